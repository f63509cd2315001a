/**
 * What was seen of a system under faults, by its clients, its tools, its stores and whoever broke it. `t` is in milliseconds
 * on one clock; ids are whatever the observers call things, as long as they call them the same.
 */
export type Entry =
  | Opened
  | Frame
  | Closed
  | Produced
  | Owned
  | Tool
  | Killed
  | Exited
  | Ledger
  | Reply
  | Decision
  | Claim
  | Step
  | Sighting
  | Leak
  | Memory
  | Answer

/** A client's stream is open. `stream` names one connection; without it, the run has one only. */
export type Opened = {
  kind: 'opened'
  t: number
  run: string
  stream?: string
  /** The Last-Event-ID it came back with. */
  after?: number
  gateway?: string
  customer?: string
}

/** A frame as a client received it. */
export type Frame = {
  kind: 'frame'
  t: number
  run: string
  stream?: string
  seq: number
  /** For long streams, one entry for the frames `seq` to `lastSeq`, seen one by one in this order; the rest is the last one's. */
  lastSeq?: number
  event: string
  /** Of an `error` or a `warning`. */
  code?: string
  isTerminal?: boolean
  /** It has the number of the frame before it in its stream. */
  repeats?: boolean
  /** Of what the frame says, or of the frames so far: the same for everybody who sees this number of this run. */
  digest?: string
}

/** How a stream ended: by the server's orderly end, by a broken connection, or because the client wanted no more. */
export type Closed = {
  kind: 'closed'
  t: number
  run: string
  stream?: string
  how: 'ended' | 'reset' | 'left'
  /** The last bytes were no whole frame. */
  isCut?: boolean
}

/** A frame as its engine produced it. */
export type Produced = { kind: 'produced'; t: number; run: string; seq: number; event: string; digest?: string }

/** From here on the run lives in this process. */
export type Owned = { kind: 'owned'; t: number; run: string; process: string }

/** A tool began to act, by its own log. */
export type Tool = { kind: 'tool'; t: number; run: string; epoch: number; call?: string }

export type Killed = { kind: 'killed'; t: number; what: string; signal: string }
export type Exited = { kind: 'exited'; t: number; what: string; code: number | null; signal: string | null }

/** An entry of a customer's ledger, as the store has it in the end. `absentAt` is when it was looked for and not there. */
export type Ledger = { kind: 'ledger'; t: number; customer: string; seq: number; run: string; absentAt?: number }

/** The answer to a permission reply. */
export type Reply = { kind: 'reply'; t: number; run: string; request: string; isAllow: boolean; status: number }

/** What the engine did about a permission request: called the tool, or refused it. */
export type Decision = { kind: 'decision'; t: number; run: string; request: string; isAllow: boolean }

/** An attempt at something that only one may win: creating a session, publishing a version, taking a step. */
export type Claim = { kind: 'claim'; t: number; what: string; by: string; isWon: boolean }

/** A plan step's executor says what it does. */
export type Step = {
  kind: 'step'
  t: number
  plan: string
  step: string
  epoch: number
  state: 'running' | 'done' | 'failed'
  isIdempotent?: boolean
}

/** Something that belongs to tenant `of` was shown to tenant `by`. */
export type Sighting = { kind: 'sighting'; t: number; where: string; of: string; by: string }

/** A secret's canary was found where it must not be: in a log, a body, a job, a file. */
export type Leak = { kind: 'leak'; t: number; where: string; secret: string }

export type Memory = { kind: 'memory'; t: number; what: string; rssMiB: number }

/** The answer to a request that ought to be refused. */
export type Answer = { kind: 'answer'; t: number; route: string; status: number; wrong: 'token' | 'input' }

/** Names of reliability.md §2.1 (`N…`), and of design.md §7 (`I…`) where they say more. */
export type Rule =
  | `N${1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10}`
  | 'I1' // exactly one terminal event, then the end
  | 'I6' // one winner
  | 'I9' // fails closed
  | 'I10' // bad input is a 4xx

export type Violation = { rule: Rule; what: string; evidence: Entry[] }

export const ofKind = <K extends Entry['kind']>(history: readonly Entry[], kind: K): Extract<Entry, { kind: K }>[] =>
  history.filter((entry): entry is Extract<Entry, { kind: K }> => entry.kind === kind)

/** An error that a gateway makes itself: it repeats the last number, and the run may go on behind it (D4.2). */
export const isGatewayMade = ({ event, code = '', repeats = false }: Frame): boolean =>
  event === 'error' && (READER_FAILURES.has(code) || (repeats && EITHER_SIDES.has(code)))

const READER_FAILURES = new Set(['worker_lost', 'relay_unavailable', 'stream_gap', 'slow_consumer'])
/** A run ends with these too; then they have numbers of their own. */
const EITHER_SIDES = new Set(['worker_draining', 'internal'])

/** The time of an entry. Within a process it never goes backwards; processes of one machine agree on it when they start. */
export const now = (): number => performance.timeOrigin + performance.now()
