import { type Mutant, mutantsOf } from "./mutant.ts";

// What is kept of the promises by PostgreSQL, etcd and SQLite, which only tests with a real one show.
export const storeMutants: readonly Mutant[] =
  mutantsOf(`## cli/test/commands/databases/ticket.pg.test.ts
# server/src/store/ticket/migrate.ts
ticket: one database is migrated under two names | two names
- if (other !== undefined) throw
+ if (other === name) throw
## server/test/store/etcd/faults.etcd.test.ts
# server/src/store/etcd/session/etcd.ts
a give-back to etcd with a lost answer is made again
- const how = { effect: "once", ...options } as const;
-     const done
+ const how = { ...options, effect: "any" } as const;
+     const done
# server/src/store/etcd/session/kept-rows.ts
a grant of etcd with a lost answer counts
-       failure = error;
+       for (const { change, answer } of changes) done.set(change.name, answer);
## server/test/store/etcd/restore.e2e.test.ts
# server/src/store/etcd/accept.ts
went back: an accept of an etcd begins before it has read every tag | garbage
-     await check(session, { ...how, claims: said.claims });
# server/src/store/etcd/changes.ts
a server keeps to itself that an etcd went back | hidden
-     await markWentBack(session, standing);
## server/test/store/etcd/store.etcd.test.ts
# server/src/store/etcd/session/kept-rows.ts
a row in etcd is written over whatever is there
-       compare: [{ key, modRevision: from.modRevision }],
+       compare: [],
# server/src/store/etcd/worker-leases.ts
etcd worker leases without the row's compare | decided on
-           { key: place, modRevision: over.modRevision },
## server/test/store/etcd/strangers.e2e.test.ts
# server/src/store/etcd/session/etcd.ts
transactions of etcd compare the revision of the key store, which another store may have too | on its way
-     const compare = [{ key: this.keys.one("store"), value }];
+     const compare = [{ key: this.keys.one("store"), ...(value.length === 0 ? { value } : { modRevision: standing.modRevision }) }];
# server/src/store/etcd/session/sight.ts
a server starts on members of two etcds | two clusters
-   if (clusters.size <= 1 && stores.size <= 1) return;
+   if (clusters.size <= 2 && stores.size <= 2) return;
## server/test/store/etcd/went-back.etcd.test.ts
# server/src/store/etcd/changes.ts
went back: etcd is not marked for a tag that is behind | a tag's key
- if (mayMark) await markBehind
+ if (!mayMark) await markBehind
# server/src/store/etcd/nodes.ts
went back: etcd is not marked for what a row shows | slept while etcd's data
- if (loss !== "") {
+ if (loss === "none") {
# server/src/store/etcd/own-row.ts
went back: etcd is asked for a row that it has compacted, though a lower one is there | slept while etcd's data
- isEarlier ? false : await isInHistory
+ await isInHistory
went back: etcd's history explains no row that was forgotten | made again at once
- if (wasThere !== false) return { loss: "", isThere: wasThere === true };
## server/test/store/postgres/commit.pg.test.ts
# server/src/store/postgres/connections.ts
postgres: a COMMIT that answers ROLLBACK is taken for done
- if (command !== "COMMIT") throw
+ if (command === "") throw
## server/test/store/postgres/faults/durable.pg.test.ts
# server/src/store/postgres/accept.ts
postgres: a store whose tables a crash empties is accepted | a store whose table
- await assertLogged(session, "idmint");
## server/test/store/postgres/hosts/hosts.pg.test.ts
# server/src/store/postgres/hosts/others.ts
failover: a store is accepted beside a host that is silent | known to be stopped
- if (silent.length === 0 || saysStopped) return;
+ if (silent.length >= 0 || saysStopped) return;
## server/test/store/postgres/pin.pg.test.ts
# server/src/store/postgres/connections.ts
pin: a new connection is not proved
- await this.#belonging?.prove(client);
# server/src/store/postgres/identity.ts
pin: a session that leads elsewhere grants | a session that leads to another store
- THEN 'store_id' END
+ THEN NULL END
## server/test/store/postgres/faults/pooler.pg.test.ts
# server/src/store/postgres/session.ts
postgres: a transaction commits as its session happens to
- return allowUnsafe.includes("synchronous_commit") ? begin :
+ return allowUnsafe.length > 0 ? begin :
## server/test/store/postgres/restore.pg.test.ts
# server/src/store/postgres/identity.ts
store: the identity of PostgreSQL is not compared
- WHEN s.identity <> \${PRESENT_IDENTITY}
+ WHEN s.identity = ''
store: a store row loaded from a dump is not noticed
- WHEN s.xmin <> s.written_by
+ WHEN false
## server/test/store/postgres/sequences.pg.test.ts
# server/src/store/postgres/grant.ts
store: the clock that ends periods is read before the lock is had
- SELECT clock_timestamp() AS store_now, count(*) FROM locked
+ SELECT statement_timestamp() AS store_now, count(*) FROM locked
postgres: a period begins by the store's clock alone
- least(c.store_now, to_timestamp($8::bigint / 1000.0))
+ greatest(c.store_now, to_timestamp($8::bigint / 1000.0) - interval '9 days')
postgres: a grant goes back to the period of the clock
- greatest(l.period_start, \${periodAt("l.period_unit", "l.time_zone", "m.now")})
+ \${periodAt("l.period_unit", "l.time_zone", "m.now")}
## server/test/store/postgres/hosts/standbys.e2e.test.ts
# server/src/store/postgres/connections.ts
failover: an answer that its standby lacks counts | ends without a word
- if (missing.length > 0) throw unconfirmed(missing);
# server/src/store/postgres/identity.ts
failover: a server with one host undermines the standby | names one host
- AND 'standbys' <> ALL (\${allowed})
+ AND 'standbys' = ALL (\${allowed}) AND false
## server/test/store/postgres/went-back.pg.test.ts
# server/src/store/postgres/hosts/own-row.ts
went back: a row that a hand wrote becomes one of ours by the mark
- OR t.xmin = t.written_by AND t.moved_to
+ OR t.moved_to
went back: a history that was left is entered again
-       this.#left.add(before);
# server/src/store/postgres/migrations/000001-init.ts
went back: a row that is removed leaves no trace
-   INSERT INTO idmint.node_gone (id, renewals) VALUES (old.id, old.renewals);
# server/src/store/postgres/nodes.ts
went back: a renewal wipes out its own proof
- 
-     WHERE n.renewals >= (SELECT x.renewals FROM expected AS x)
went back: a row that is gone is made again at once
- \${history}::text OR \${mayMake}::boolean AS may_make
+ \${history}::text OR \${mayMake}::boolean OR true AS may_make
## server/test/store/postgres/store.pg.test.ts
# server/src/store/postgres/connections.ts
store: a warning of PostgreSQL is ignored | a warning during a grant
-       if (warnings.length > 0) {
+       if (warnings.length < 0) {
# server/src/store/postgres/give-back.ts
store: give-back without the version, PostgreSQL | a floor that came back
- AND l.floor = r.last_id AND l.version = r.version
+ AND l.floor = r.last_id AND r.version >= 0
# server/src/store/postgres/grant.ts
store: ids as JavaScript numbers past 2^53, PostgreSQL | ids are exact across
- base: BigInt(row.floor) - count + 1n,
+ base: BigInt(Number(row.floor) - Number(count) + 1),
store: an \`after\` above the floor is granted, PostgreSQL | above the floor is refused
- WHEN r.after_id > l.present_floor THEN
+ WHEN r.after_id < 0 THEN
store: the version that was seen is not compared, PostgreSQL | a version higher than the row's
- WHEN l.version < r.seen_version THEN
+ WHEN false THEN
store: PostgreSQL rows are judged before they are locked | grants of several handles at once never overlap
- ORDER BY t.name FOR UPDATE
+ ORDER BY t.name
# server/src/store/postgres/marks.ts
marks of PostgreSQL fall | a mark rises, never falls
- DO UPDATE SET mark = excluded.mark WHERE excluded.mark > m.mark
+ DO UPDATE SET mark = excluded.mark
## server/test/store/spread/workers.pg.test.ts
# server/src/store/postgres/worker-leases.ts
snowflake: a database leases worker ids of a tag that moved away
-       if (row.is_elsewhere) throw new TagMovedError(tag);
## server/test/store/sqlite/processes.e2e.test.ts
# server/src/store/sqlite/file/database.ts
store: a commit that failed on SQLite goes unnoticed
-       throw this.#notCommitted(handle, error);
+       void this.#notCommitted(handle, error);
## server/test/store/sqlite/restore.chaos.test.ts
# server/src/store/sqlite/file/files.ts
store: replaced files under a running SQLite server are not noticed
- one.wal === other.wal && one.shm === other.shm
+ true
# server/src/store/sqlite/file/identity.ts
store: a copied SQLite file is not noticed
- if (row.identity !== files.identity) {
+ if (row.identity === "") {
store: the witness of a SQLite file is not compared
- if (witnessed !== undefined && isBehind(row, witnessed)) {
+ if (witnessed !== undefined && isBehind(row, row)) {
store: SQLite rows that went back alone are not noticed
- if (!hasAllRows(transaction, row)) return
+ if (!hasAllRows(transaction, row) && row.progress < 0n) return
## server/test/store/ticket/store.pg.test.ts
# server/src/store/ticket/grant.ts
ticket: a slot grants under an epoch that is over | a slot is taken over once
- WHEN l.state <> 'active' OR l.epoch <> r.epoch OR l.owner
+ WHEN l.state <> 'active' OR l.owner
ticket: what was down grants before it is raised | after a restart slots grant
-     WHEN l.raised_under <> pg_postmaster_start_time() THEN 'NOT_RAISED'
# server/src/store/ticket/slots.ts
ticket: a slot is given away twice | a frozen slot grants nothing
- AND t.epoch = $3 AND t.state = 'active'
-   AND t.owner = d.database_id
+ AND t.epoch <= $3
ticket: a slot that comes back goes on below its own ids | a slot is taken over once
-   last_id = greatest(t.last_id, excluded.last_id),
+   last_id = excluded.last_id,
ticket: an owner that comes back has what was given up | given up
-   greatest($4::bigint + 1, floor(extract(epoch FROM clock_timestamp()))::bigint),
-   \${lastIdUpTo("0::bigint", "l.slot"
+   1,
+   \${lastIdUpTo("0::bigint", "l.slot"
`);
