import { writeFileSync } from 'node:fs'
import { HIDDEN } from '../shared/reading/hidden.ts'

/** The lists of `shared/reading/hidden.ts` as classes of Python's `re`, whose own Unicode is older or newer with each version of Python. */
export function charactersModule(): string {
  const lists = {
    HIDDEN: (char: string) => char.search(HIDDEN) === 0,
    MARKS: (char: string) => /\p{M}/u.test(char),
    PICTOGRAPHS: (char: string) => /\p{Extended_Pictographic}/u.test(char),
    MODIFIERS: (char: string) => /\p{Emoji_Modifier}/u.test(char),
  }
  const lines = Object.entries(lists).map(([name, has]) => `${name} = (\n${literalOf(rangesOf(has))})\n`)
  return `"""Generated from shared/reading/hidden.ts by scripts/python-characters.ts: do not edit it."""\n\n${lines.join('')}`
}

function rangesOf(has: (char: string) => boolean): string[] {
  const ranges: string[] = []
  for (let code = 0; code <= 0x10ffff; code++) {
    if (!has(String.fromCodePoint(code))) continue
    const first = code
    while (code < 0x10ffff && has(String.fromCodePoint(code + 1))) code++
    ranges.push(first === code ? escapeOf(first) : `${escapeOf(first)}-${escapeOf(code)}`)
  }
  return ranges
}

const escapeOf = (code: number): string =>
  code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`

/** Lines of at most eight ranges. */
function literalOf(ranges: readonly string[]): string {
  const lines = ranges.flatMap((_, i) => (i % 8 === 0 ? [`    r"${ranges.slice(i, i + 8).join('')}"\n`] : []))
  return lines.join('')
}

if (import.meta.main) {
  const file = new URL('../shared/client-python/agent_engine/_characters.py', import.meta.url)
  writeFileSync(file, charactersModule())
}
