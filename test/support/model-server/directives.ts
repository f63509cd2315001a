import type { Received } from './received.ts'
import type { Answer, ScriptedAnswer, Step } from './script.ts'

export const DIRECTIVES = `
/say TEXT              sends the text
/think TEXT            sends the text as thinking
/tokens COUNT [MS]     that many one-token texts, one each MS milliseconds (default: as fast as they are read)
/blocks COUNT KIB      that many texts of so many KiB, as fast as they are read
/tool NAME [JSON]      calls a tool
/wait MS               pauses
/hang                  never sends another byte
/reset                 resets the connection
/truncate              ends the response without the model's end
/raw TEXT              these bytes in the stream
/error STATUS          the provider's error: instead of an answer when nothing is before it, else inside the stream
/toolong               the provider's error for an input that is too long
/stop TEXT             reports this stop sequence (Anthropic's format)
/then                  what follows answers the tool's results, which are repeated otherwise
`

/** 64 characters. */
const LINE = 'All work and no play makes a dull "text" for every reader here.\n'

const STEPS: Record<string, (rest: string) => Step> = {
  say: (text) => ({ text }),
  think: (thinking) => ({ thinking }),
  tokens: (rest) => {
    const [count = 0, everyMs = 0] = rest.split(/\s+/).map(Number)
    return { tokens: count, everyMs }
  },
  blocks: (rest) => {
    const [count = 0, kib = 0] = rest.split(/\s+/).map(Number)
    return { text: Array<string>(count).fill(LINE.repeat((kib * 1024) / LINE.length)) }
  },
  tool: (rest) => {
    const [name = '', ...input] = rest.split(' ')
    return { tool: name, input: input.join(' ') || '{}' }
  },
  wait: (ms) => ({ wait: Number(ms) }),
  hang: () => ({ hang: true }),
  reset: () => ({ reset: true }),
  truncate: () => ({ truncate: true }),
  raw: (text) => ({ raw: text }),
  error: (status) => ({ error: { status: Number(status) } }),
}

const THEN = /^\/then$/m

type Asked = Pick<Received, 'prompt' | 'lastAsked' | 'results'>

/**
 * Answers as the directives in the last user message say, one on each text line; other text beside directives is ignored. A
 * message without directives is echoed, and tool results are repeated unless directives follow a `/then`.
 */
export function answerDirectives({ prompt, lastAsked, results }: Asked): Answer {
  if (results.length === 0) return answerTo(prompt.split(THEN)[0] ?? '')
  const after = lastAsked.split(THEN)[1]
  if (after !== undefined) return answerTo(after)
  return `The tool said: ${results.map(({ text }) => text).join('\n')}`
}

function answerTo(prompt: string): Answer {
  const lines = [...prompt.matchAll(/^[ \t]*\/(\w+)[ \t]*(.*)$/gm)].map(([, name = '', rest = '']) => ({ name, rest }))
  if (lines.some(({ name }) => name === 'toolong')) return { contextTooLong: true }
  const stop = lines.find(({ name }) => name === 'stop')?.rest
  const steps = lines.flatMap(({ name, rest }) => STEPS[name]?.(rest.trim()) ?? [])
  const [first] = steps
  if (first && 'error' in first) return first.error
  const echo: Step[] = steps.length > 0 ? steps : [{ text: prompt }]
  const answer: ScriptedAnswer = { steps: echo, honourStop: true }
  return stop === undefined ? answer : { ...answer, stopSequence: stop }
}
