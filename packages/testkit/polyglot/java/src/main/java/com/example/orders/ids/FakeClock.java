package com.example.orders.ids;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** For tests, which step the clock of a running program. The file has an offset in seconds. */
public final class FakeClock {
  public static void use(Path file) {
    Snowflakes.clock = () -> {
      try {
        return System.currentTimeMillis() + (long) (Double.parseDouble(Files.readString(file).trim()) * 1_000);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    };
  }
}
