import { isJsonObject, parseJson } from '../../../kernel/json.ts'
import type { FailureCode } from '../port.ts'

/** One thing the demo model does. */
export type Act =
  | { do: 'say' | 'think'; text: string }
  /** A text without a directive is echoed. */
  | { do: 'echo'; text: string }
  /** The input is the JSON text of an object. */
  | { do: 'call'; toolName: string; input: string }
  | { do: 'fail'; code: FailureCode; message?: string }
  | { do: 'sleep'; ms: number }

const FAILURE_CODES: Record<FailureCode, true> = {
  provider_auth: true,
  provider_rate_limited: true,
  provider_unavailable: true,
  provider_rejected: true,
  context_too_long: true,
  content_filtered: true,
  unsupported_attachment: true,
  timeout: true,
  budget_exhausted: true,
  storage_unavailable: true,
}

/** The longest turn of a model (`MODEL_LIMITS.turnMs`). */
const MAX_SLEEP_MS = 600_000

const DIRECTIVES =
  'The demo model has these directives, each on a text line of its own: /tool NAME {json}, /think TEXT, /say TEXT, /plan {json}, /sleep MS, ' +
  `/fail CODE (${Object.keys(FAILURE_CODES).join(', ')}).`

/**
 * Reads the acts of each turn from a prompt (D1.4). A turn ends with its tool call; the last turn, which may be empty, has the
 * acts after the last tool call. A text before the first directive is a description for people, and no act.
 */
export function turnsOf(prompt: string): Act[][] {
  const turns: Act[][] = [[]]
  const acts = actsOf(prompt)
  for (const act of acts.length > 1 && acts[0]?.do === 'echo' ? acts.slice(1) : acts) {
    turns.at(-1)?.push(act)
    if (act.do === 'call') turns.push([])
  }
  return turns
}

/** Each group of adjacent text lines is one act. */
function actsOf(prompt: string): Act[] {
  const acts: Act[] = []
  let plain: string[] = []
  const echo = () => {
    const text = plain.join('\n').trim()
    if (text !== '') acts.push({ do: 'echo', text })
    plain = []
  }
  for (const textLine of prompt.split(/\r?\n/)) {
    const [, name, rest = ''] = /^\/([A-Za-z]+)(?:\s+(.*))?$/.exec(textLine.trim()) ?? []
    if (name === undefined) plain.push(textLine)
    else {
      echo()
      acts.push(actOf(name, rest))
    }
  }
  echo()
  return acts
}

function actOf(name: string, rest: string): Act {
  switch (name) {
    case 'say':
    case 'think':
      return rest === '' ? notUnderstood(`/${name} needs a text`) : { do: name, text: rest }
    case 'tool':
      return toolCall(rest)
    case 'plan':
      return call('ExitPlanMode', rest)
    case 'fail':
      return isFailureCode(rest) ? { do: 'fail', code: rest } : notUnderstood(`"${rest}" is not a failure code`)
    case 'sleep':
      return sleep(rest)
    default:
      return notUnderstood(`there is no directive /${name}`)
  }
}

const isFailureCode = (code: string): code is FailureCode => Object.hasOwn(FAILURE_CODES, code)

function toolCall(rest: string): Act {
  const [, toolName, json = ''] = /^(\S+)\s*(.*)$/.exec(rest) ?? []
  return toolName === undefined ? notUnderstood('/tool needs the name of a tool') : call(toolName, json)
}

function call(toolName: string, json: string): Act {
  const input = json === '' ? '{}' : json
  return isJsonObject(parseJson(input))
    ? { do: 'call', toolName, input }
    : notUnderstood(`the input for ${toolName} is not a JSON object`)
}

function sleep(rest: string): Act {
  const ms = rest === '' ? Number.NaN : Number(rest)
  return ms >= 0 && ms <= MAX_SLEEP_MS
    ? { do: 'sleep', ms }
    : notUnderstood(`/sleep needs milliseconds from 0 to ${MAX_SLEEP_MS}`)
}

const notUnderstood = (problem: string): Act => ({ do: 'say', text: `Not understood: ${problem}. ${DIRECTIVES}` })
