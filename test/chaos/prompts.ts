/** A prompt for the demo model (D1.4): says `count` numbers, one each `everyMs`. Each is repeated `words` times, which makes as many frames. */
export function paced({ count, everyMs, words = 1 }: { count: number; everyMs: number; words?: number }): string {
  const lines = Array.from({ length: count }, (_, n) => `/say ${Array(words).fill(n).join(' ')}\n/sleep ${everyMs}`)
  return lines.join('\n')
}

/** A prompt for the demo model: calls a tool each `everyMs`, once in each turn. */
export function acting({
  inputs,
  tool,
  everyMs,
}: {
  inputs: readonly object[]
  tool: string
  everyMs: number
}): string {
  return inputs.map((input) => `/sleep ${everyMs}\n/tool ${tool} ${JSON.stringify(input)}`).join('\n')
}
