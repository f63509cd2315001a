import { expect } from 'chai'
import fc from 'fast-check'
import type { Tool } from '../../shared/agent/tools/port.ts'
import { createBashTool } from '../../shared/agent/tools/process/bash.ts'
import { createWebFetchTool } from '../../shared/agent/tools/web/web-fetch.ts'
import { createFileTools } from '../../shared/agent/tools/workspace/file-tools.ts'
import type { JsonObject } from '../../shared/kernel/events.ts'
import type { AskedCall } from '../../shared/reading/read-call.ts'
import { contextOf } from '../agent/tools/setup.ts'

/** What is hidden, what looks like its escape, and what a shell or an address acts on. */
const PARTS = [
  ...[
    'a',
    'A',
    ' ',
    '  ',
    '\n',
    '\r',
    '\t',
    '\\',
    '\\n',
    '\\r',
    '\\u202e',
    '\\u{e0041}',
    'u202e',
    '"',
    '#',
    ';',
    '/',
    '@',
    '.',
    ':',
    '%2f',
  ],
  ...[
    '\u202e',
    '\u202c',
    '\u2066',
    '\u061c',
    '\u200b',
    '\u200d',
    '\ufe0f',
    '\u00a0',
    '\u00ad',
    '\u3164',
    '\ufeff',
    '\u2028',
    '\u{e0041}',
  ],
  ...[
    '\ud800',
    '\u0301',
    'é',
    '\u212b',
    'å',
    'а',
    'א',
    '1',
    '+',
    '-',
    '@@',
    '--- a',
    '1\ufe0f\u20e3',
    '👩\u200d👧',
    '[… the rest is left out …]',
    '\u001b[2J',
    '\0',
  ],
]

type Change = { field: number; at: number; part: string }

/** The input with a part put into one of its texts, or taken out of it. */
function changed(input: JsonObject, { field, at, part }: Change): JsonObject {
  const names = Object.keys(input).filter((name) => typeof input[name] === 'string')
  const name = names[field % Math.max(1, names.length)]
  if (name === undefined) return { ...input, [part]: part }
  const text = String(input[name])
  const i = at % (text.length + 1)
  const next =
    at % 3 === 0 && i < text.length ? text.slice(0, i) + text.slice(i + 1) : text.slice(0, i) + part + text.slice(i)
  return { ...input, [name]: next }
}

const [write] = createFileTools().filter(({ name }) => name === 'Write')

const TOOLS: Readonly<Record<string, Tool | undefined>> = {
  Bash: createBashTool(),
  WebFetch: createWebFetchTool({ egress: () => expect.fail('opened') }),
  Write: write,
  mcp__a__b: undefined,
}

const text = fc.string({ unit: fc.constantFrom(...PARTS), maxLength: 30 })

const INPUTS: Readonly<Record<string, fc.Arbitrary<JsonObject>>> = {
  Bash: fc.record({ command: text, timeout_ms: fc.nat(5) }, { requiredKeys: ['command'] }),
  WebFetch: fc.record({ url: text.map((rest) => `http://a${rest}`) }),
  Write: fc.record({ path: text.map((name) => `a${name.replaceAll(/[/\0]|\.\./g, '')}`), content: text }),
  mcp__a__b: fc.dictionary(text, fc.oneof(text, fc.jsonValue())),
}

/** Two inputs of a tool, of which the second is the first with one text changed somewhere. */
export const pairsOfInputs = fc
  .constantFrom(...Object.entries(INPUTS))
  .chain(([name, inputs]) => fc.tuple(fc.constant(name), inputs, fc.nat(), fc.nat(), fc.constantFrom(...PARTS)))
  .map(([name, input, field, at, part]) => ({ name, input, other: changed(input, { field, at, part }) }))

/** The call with the preview that its tool makes of it. */
export const askedCall = async (folder: string, name: string, input: JsonObject): Promise<AskedCall> => ({
  input,
  preview: await TOOLS[name]?.preview?.(input, contextOf(folder)),
})
