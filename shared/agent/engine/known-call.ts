import { isJsonObject, parseJson } from '../../kernel/json.ts'
import type { ToolBox } from '../tools/port.ts'
import { withParsedTexts } from './parsed-texts.ts'

type Sent = { toolName: string; input: string }
type Known = Pick<ToolBox, 'tools' | 'find'>

/**
 * Corrects a call for its tool. Models garble names (`functions.Read`, `read`) and put JSON as text inside JSON: events, history and
 * the tool get the right name and parsed values.
 */
export function knownCall<Call extends Sent>(call: Call, tools: Known): Call & { isReread?: boolean } {
  const toolName = knownName(call.toolName, tools)
  const named = toolName === call.toolName ? call : { ...call, toolName }
  const tool = tools.find(toolName)
  const value = parseJson(call.input)
  const inner = typeof value === 'string' ? parseJson(value) : value
  if (!tool || !isJsonObject(inner)) return named
  const { value: input, hasTexts } = withParsedTexts(inner, tool.inputSchema)
  if (!hasTexts && inner === value) return named
  return { ...named, input: JSON.stringify(input), isReread: true }
}

/** The name of the tool that a model means: the only matching one, or else the name unchanged. */
export function knownName(name: string, { tools, find }: Known): string {
  if (find(name)) return name
  for (const form of FORMS) {
    const key = form(name)
    const [fit, another] = tools.filter((tool) => form(tool.name) === key)
    if (fit && !another) return fit.name
  }
  return name
}

/**
 * Simplified forms of a name: first without the tokens, namespaces and punctuation that models put around it, then also
 * without punctuation inside it.
 */
const FORMS: ((name: string) => string)[] = [bare, (name) => bare(name).replace(/[^\p{L}\p{N}]/gu, '')]

function bare(name: string): string {
  const [text = ''] = name
    .trim()
    .replace(/^(?:<[^>]*>)+/, '')
    .split('<', 1)
  return text
    .replace(/^\W+|\W+$/g, '')
    .replace(/^(?:.*[\s=])?(?:functions?|tools?|default_api)[.:/]/i, '')
    .replace(/:\d+$/, '')
    .toLowerCase()
}
