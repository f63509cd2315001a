import { type Entry, type Frame, isGatewayMade, ofKind, type Step, type Tool, type Violation } from '../history.ts'
import type { Limits } from '../limits.ts'

/** N3 and I6: nothing acts twice, no ghost acts, nothing acts for a run that has ended, and of two who claim one wins. */
export function checkEffects(history: readonly Entry[], limits: Limits): Violation[] {
  return [...checkTools(history, limits), ...checkSteps(ofKind(history, 'step')), ...checkClaims(history)]
}

function checkTools(history: readonly Entry[], limits: Limits): Violation[] {
  const ends = new Map(endsIn(history).map((frame) => [frame.run, frame]))
  const announced = announcedIn(history)
  const latest = new Map<string, Tool>()
  const calls = new Map<string, Tool>()
  return ofKind(history, 'tool').flatMap((tool) => {
    const found: Violation[] = []
    const say = (what: string, ...before: Entry[]) =>
      found.push({ rule: 'N3', what: `${tool.run}: ${what}`, evidence: [...before, tool] })
    const call = tool.call && calls.get(`${tool.run} ${tool.call}`)
    const newer = latest.get(tool.run)
    const end = ends.get(tool.run)
    if (call) say('a tool call was started twice', call)
    if (newer && newer.epoch > tool.epoch) say('a tool was started by an older epoch', newer)
    const left = (announced.get(tool.run) ?? 0) - 1
    announced.set(tool.run, left)
    if (end && tool.t > end.t + limits.slackMs && left < 0) say('a tool was started after the run had ended', end)
    if (tool.call) calls.set(`${tool.run} ${tool.call}`, tool)
    if (!newer || newer.epoch < tool.epoch) latest.set(tool.run, tool)
    return found
  })
}

/**
 * How many starts the clients of each run were told of. One that was told and had not acted yet may have been frozen between
 * its start and its effect: no worker can take that back (reliability.md L4).
 */
function announcedIn(history: readonly Entry[]): Map<string, number> {
  const told = new Map<string, Set<number>>()
  for (const { run, seq, event } of ofKind(history, 'frame'))
    if (event === 'tool_use') told.set(run, (told.get(run) ?? new Set()).add(seq))
  return new Map([...told].map(([run, seqs]) => [run, seqs.size]))
}

/** `worker_lost` ends its run although a gateway says it; behind the other errors of a gateway the run may go on. */
const endsIn = (history: readonly Entry[]): Frame[] =>
  ofKind(history, 'frame').filter(
    (frame) => frame.isTerminal && (frame.code === 'worker_lost' || !isGatewayMade(frame)),
  )

function checkSteps(steps: readonly Step[]): Violation[] {
  const started = new Map<string, Step>()
  const done = new Map<string, Step>()
  return steps.flatMap((step) => {
    const found: Violation[] = []
    const name = `${step.plan} ${step.step}`
    const say = (what: string, before: Step) =>
      found.push({ rule: 'N3', what: `${name}: ${what}`, evidence: [before, step] })
    const [first, finished] = [started.get(name), done.get(name)]
    if (finished && step.state !== 'failed') say(`${step.state} after it was done`, finished)
    else if (first && step.state === 'running' && !step.isIdempotent) say('was started twice', first)
    if (step.state === 'running') started.set(name, step)
    if (step.state === 'done') done.set(name, step)
    return found
  })
}

function checkClaims(history: readonly Entry[]): Violation[] {
  const won = Map.groupBy(
    ofKind(history, 'claim').filter(({ isWon }) => isWon),
    ({ what }) => what,
  )
  return [...won].flatMap(([what, winners]): Violation[] =>
    winners.length > 1 ? [{ rule: 'I6', what: `${what}: ${winners.length} winners`, evidence: winners }] : [],
  )
}
