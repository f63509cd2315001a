import type { Case } from '../case.ts'
import { post } from '../request.ts'

const PROMPT_CHARS = 100_000

const run = (prompt: string, more: object = {}) => post('/v1/agent/run', { prompt, ...more })
const full = (unit: string, start = '') => start + unit.repeat(Math.floor((PROMPT_CHARS - start.length) / unit.length))

/** Valid requests that cause as much work as possible. */
export const work: readonly Case[] = [
  ['50,000 words', run(full('a ', '/say ')), 200],
  ['one word of 100,000 letters', run(full('a', '/say ')), 200],
  ['100,000 blanks between two words', run(`/say a${' '.repeat(90_000)}b`), 200],
  ['100,000 lines', run(full('\n', 'x')), 200],
  ['14,000 things to say', run(full('/say a\n')), 200],
  ['12,000 tool calls', run(full('/tool x\n'), { max_turns: 200 }), 200],
  ['100,000 combining marks', run(full('\u0301', 'a')), 200],
  ['100,000 characters that JSON escapes', run(full('\u0001"\\', '/say ')), 200],
  ['stop sequences that nearly match', run(full('a ', '/say '), { stop_sequences: nearly('a ') }), 200],
  ['stop sequences that nearly match within one word', run(full('a', '/say '), { stop_sequences: nearly('a') }), 200],
  ['a system prompt of a million characters', run('/say a', { system_prompt: 'a'.repeat(1_000_000) }), 200],
  ['a long word that begins like a directive', run(full('/', '/say')), 200],
  ['a tool’s input of 90 KB', run(`/tool Read {"path":"${'../'.repeat(30_000)}"}`), 200],
  ['a tool’s input of 20,000 lists', run(`/tool Read {"path":${'['.repeat(20_000)}${']'.repeat(20_000)}}`), 200],
]

function nearly(unit: string): string[] {
  const long = unit.repeat(256 / unit.length)
  return Array.from({ length: 16 }, (_, i) => `${long.slice(0, 250 - i)}b`)
}
