/**
 * One observation of a system under faults: by a client, a tool, a store or the script that injects faults. `t` is in
 * milliseconds of one clock. Ids may be chosen freely, but all observers must use the same ones.
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

/** A client's stream has opened. `stream` names the connection; it is absent when the run has only one. */
export type Opened = {
  kind: 'opened'
  t: number
  run: string
  stream?: string
  /** The Last-Event-ID that the client sent. */
  after?: number
  gateway?: string
  customer?: string
}

/** A frame that a client received. */
export type Frame = {
  kind: 'frame'
  t: number
  run: string
  stream?: string
  seq: number
  /** The entry stands for the frames `seq` to `lastSeq`, received one by one in this order; the other fields describe the last. For long streams. */
  lastSeq?: number
  event: string
  /** The code of an `error` or a `warning`. */
  code?: string
  isTerminal?: boolean
  /** Its number is that of the frame before it in its stream. */
  repeats?: boolean
  /** Digest of the frame, or of all frames so far. It is the same for every reader of this number of this run. */
  digest?: string
}

/** How a stream ended: the server completed the response, the connection broke, or the client closed it. */
export type Closed = {
  kind: 'closed'
  t: number
  run: string
  stream?: string
  how: 'ended' | 'reset' | 'left'
  /** The last bytes were not a complete frame. */
  isCut?: boolean
}

/** A frame that an engine produced. */
export type Produced = { kind: 'produced'; t: number; run: string; seq: number; event: string; digest?: string }

/** From this time on the process executes the run. */
export type Owned = { kind: 'owned'; t: number; run: string; process: string }

/** A tool call started. */
export type Tool = { kind: 'tool'; t: number; run: string; epoch: number; call?: string }

export type Killed = { kind: 'killed'; t: number; what: string; signal: string }
export type Exited = { kind: 'exited'; t: number; what: string; code: number | null; signal: string | null }

/** An entry of a customer's ledger, as stored in the end. `absentAt` is a time at which it was not there yet. */
export type Ledger = { kind: 'ledger'; t: number; customer: string; seq: number; run: string; absentAt?: number }

/** The answer to a permission reply. */
export type Reply = { kind: 'reply'; t: number; run: string; request: string; isAllow: boolean; status: number }

/** Whether the engine called the tool after a permission request. */
export type Decision = { kind: 'decision'; t: number; run: string; request: string; isAllow: boolean }

/** An attempt at something that only one may do: creating a session, publishing a version, starting a step. */
export type Claim = { kind: 'claim'; t: number; what: string; by: string; isWon: boolean }

/** An executor reports the state of a plan step. */
export type Step = {
  kind: 'step'
  t: number
  plan: string
  step: string
  epoch: number
  state: 'running' | 'done' | 'failed'
  isIdempotent?: boolean
}

/** Data of tenant `of` was shown to tenant `by`. */
export type Sighting = { kind: 'sighting'; t: number; where: string; of: string; by: string }

/** A secret was found where it must not be: in a log, a body, a job or a file. */
export type Leak = { kind: 'leak'; t: number; where: string; secret: string }

export type Memory = { kind: 'memory'; t: number; what: string; rssMiB: number }

/** The answer to a request that must be refused. */
export type Answer = { kind: 'answer'; t: number; route: string; status: number; wrong: 'token' | 'input' }

/** The rules that the checker enforces. */
export type Rule =
  | 'stream-without-end' // A stream has no terminal event, ends too late, or breaks without a fault that explains it.
  | 'events-after-end' // An event follows the terminal event.
  | 'stream-altered' // A hole, a duplicate, another order, a cut frame, or two contents of one number.
  | 'ledger-mismatch' // `done` without exactly one ledger entry, an entry of a failed run, or a hole in the numbers.
  | 'extra-effect' // An effect happens twice, by a stale owner, or after the end of its run.
  | 'two-winners' // Two attempts succeed at something that only one may do.
  | 'reply-not-honoured' // A permission reply is answered ok and the engine does something else.
  | 'allowed-without-reply' // The engine calls a tool that no reply allowed.
  | 'tenant-crossing' // A tenant sees data of another.
  | 'secret-leaked'
  | 'unexpected-exit' // A process dies that was not killed, or does not exit with code 0 when asked to end.
  | 'memory-growth'
  | 'forged-token-accepted'
  | 'wrong-refusal' // Bad input is not answered with a 4xx.

export type Violation = { rule: Rule; what: string; evidence: Entry[] }

export const ofKind = <K extends Entry['kind']>(history: readonly Entry[], kind: K): Extract<Entry, { kind: K }>[] =>
  history.filter((entry): entry is Extract<Entry, { kind: K }> => entry.kind === kind)

/** Whether a gateway made this error event itself: it repeats the last number, and the run may continue (D4.2). */
export const isGatewayMade = ({ event, code = '', repeats = false }: Frame): boolean =>
  event === 'error' && (GATEWAY_CODES.has(code) || (repeats && SHARED_CODES.has(code)))

const GATEWAY_CODES = new Set(['worker_lost', 'relay_unavailable', 'stream_gap', 'slow_consumer'])
/** Codes that a run may end with, too; then the event has its own number. */
const SHARED_CODES = new Set(['worker_draining', 'internal'])

/** The time for an entry. It never goes backwards within a process; processes of one machine agree on it at their start. */
export const now = (): number => performance.timeOrigin + performance.now()
