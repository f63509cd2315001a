/** What the demo model is told (D1.4): a number at a time, one each `everyMs`; `words` makes each of that many frames, and a block's end. */
export function paced({ count, everyMs, words = 1 }: { count: number; everyMs: number; words?: number }): string {
  const lines = Array.from({ length: count }, (_, n) => `/say ${Array(words).fill(n).join(' ')}\n/sleep ${everyMs}`)
  return lines.join('\n')
}

/** Calls a tool each `everyMs`, once in each turn. */
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
