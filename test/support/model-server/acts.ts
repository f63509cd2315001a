import type { Finish, ScriptedAnswer, Step } from './script.ts'

/** A tool call with its input cut into pieces. */
export type ToolCall = { id: string | undefined; name: string; pieces: string[] }

/** A step with its text cut into pieces, ready to be performed. */
export type Act =
  | { say: 'text' | 'thinking'; pieces: string[]; everyMs: number }
  | { tokens: number; everyMs: number }
  | { call: ToolCall }
  | Exclude<Step, { text: unknown } | { thinking: unknown } | { tokens: unknown } | { tool: unknown }>

type Plan = { acts: Act[]; finish: Finish; stopSequence: string | undefined }

/** Converts an answer into acts. Its text is cut at the first of `stops` when the answer honours them. */
export function planAnswer(answer: ScriptedAnswer, stops: string[]): Plan {
  const acts = answer.steps.map(toAct)
  const cut = answer.honourStop === true ? findStop(acts, stops) : undefined
  if (cut) return { acts: cutAt(acts, cut.at), finish: 'stop', stopSequence: cut.stop }
  const finish = answer.finish ?? (acts.some((act) => 'call' in act) ? 'tool_calls' : 'stop')
  return { acts, finish, stopSequence: answer.stopSequence }
}

function toAct(step: Step): Act {
  if ('text' in step) return { say: 'text', pieces: split(step.text, step.chunks), everyMs: step.everyMs ?? 0 }
  if ('thinking' in step) {
    return { say: 'thinking', pieces: split(step.thinking, step.chunks), everyMs: step.everyMs ?? 0 }
  }
  if ('tokens' in step) return { tokens: step.tokens, everyMs: step.everyMs ?? 0 }
  if (!('tool' in step)) return step
  const json = typeof step.input === 'string' ? step.input : JSON.stringify(step.input ?? {})
  return { call: { id: step.id, name: step.tool, pieces: split(json, step.chunks ?? 3) } }
}

/** Cuts a text into words, each with the blanks before it, or into `chunks` pieces, never inside a character. */
function split(text: string | string[], chunks?: number): string[] {
  if (typeof text !== 'string') return text
  if (chunks === undefined) return text.match(/\s*\S+(?:\s+$)?|^\s+$/g) ?? []
  const characters = Array.from(text)
  const edge = (i: number) => Math.round((i * characters.length) / chunks)
  const pieces = Array.from({ length: chunks }, (_, i) => characters.slice(edge(i), edge(i + 1)).join(''))
  return pieces.filter((piece) => piece !== '')
}

/** Finds the earliest stop sequence in the text of all acts. */
function findStop(acts: Act[], stops: string[]): { at: number; stop: string } | undefined {
  const said = acts.flatMap((act) => ('say' in act && act.say === 'text' ? act.pieces : [])).join('')
  const found = stops.map((stop) => ({ at: said.indexOf(stop), stop })).filter(({ at }) => at >= 0)
  return found.toSorted((a, b) => a.at - b.at)[0]
}

/** Returns the acts up to the `at`th character of text. */
function cutAt(acts: Act[], at: number): Act[] {
  const kept: Act[] = []
  let left = at
  for (const act of acts) {
    if (!('say' in act) || act.say !== 'text') {
      kept.push(act)
      continue
    }
    const pieces: string[] = []
    for (const piece of act.pieces) {
      if (piece.length > left) {
        if (left > 0) pieces.push(piece.slice(0, left))
        return [...kept, { ...act, pieces }]
      }
      pieces.push(piece)
      left -= piece.length
    }
    kept.push({ ...act, pieces })
  }
  return kept
}
