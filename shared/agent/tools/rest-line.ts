const MAX_LINES = 10

/** The first lines, and in place of the others one that tells how many they are: strangers decide how many there would be. */
export const withRest = (lines: readonly string[], restLine: (count: number) => string): string[] =>
  lines.length <= MAX_LINES ? [...lines] : [...lines.slice(0, MAX_LINES), restLine(lines.length - MAX_LINES)]
