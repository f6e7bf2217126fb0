import fc from "fast-check";
import { expect, test } from "vitest";
import { type Place, Places } from "../../src/doors/places-state.ts";

test("one address that takes all places keeps nobody else out", () => {
  const places = new Places<number>(10);
  for (let i = 0; i < 10; i += 1) expect(places.take("stranger", i)).not.toBe("no place is free");
  expect(places.take("stranger", 10)).toBe("no place is free");
  expect(places.take("honest", 11)).toMatchObject({ loser: 9 });
  expect([places.of("stranger"), places.of("honest"), places.taken]).toEqual([9, 1, 10]);
});

test("who holds half of the places or less loses none, however many strangers come", () => {
  const places = new Places<string>(10);
  for (let i = 0; i < 5; i += 1) places.take("proxy", "proxy");
  for (let i = 0; i < 5; i += 1) places.take(`stranger ${i}`, "stranger");
  expect(places.take("newcomer", "newcomer")).toBe("no place is free");
  expect(places.of("proxy")).toBe(5);
});

test("counts are those of the open connections, and the newest of the greediest gives way", () => {
  const step = fc.record({
    address: fc.constantFrom("a", "b", "c", "d"),
    frees: fc.option(fc.nat()),
  });
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 12 }),
      fc.array(step, { maxLength: 200 }),
      (most, steps) => {
        const places = new Places<number>(most);
        let open: Place<number>[] = [];
        const of = (address: string) => open.filter((place) => place.address === address).length;
        for (const [i, { address, frees }] of steps.entries()) {
          if (frees !== null) {
            const gone = open[frees % Math.max(1, open.length)];
            if (gone === undefined) continue;
            places.free(gone);
            places.free(gone);
            open = open.filter((place) => place !== gone);
          } else {
            const greatest = Math.max(0, ...open.map((place) => of(place.address)));
            const isFull = open.length >= most;
            const taken = places.take(address, i);
            const mayStay = greatest * 2 <= most || of(address) + 2 > greatest;
            expect(taken === "no place is free").toBe(isFull && mayStay);
            if (taken === "no place is free") continue;
            expect(taken.loser !== undefined).toBe(isFull);
            const loser = open.find((place) => place.its === taken.loser);
            if (loser !== undefined) {
              expect(of(loser.address)).toBe(greatest);
              expect(open.findLast((place) => place.address === loser.address)).toBe(loser);
            }
            open = [...open.filter((place) => place !== loser), taken.place];
          }
          expect(places.taken).toBe(open.length);
          for (const each of ["a", "b", "c", "d"]) expect(places.of(each)).toBe(of(each));
        }
      },
    ),
  );
});
