import { readdirSync, readFileSync } from 'node:fs'

/** The result of a run. */
export type ExpectedRun = {
  /** How many events its user gets, the last one included. */
  events: number
  /** The text blocks of the run with a blank line between them. */
  text: string
  /**
   * `done`, `plan_queued` and `error`: the run's last event. `lost`: the server does not know the run. `refused`: it did not start it.
   * `connection`: there is no answer, and the request is not safe to repeat.
   */
  end: 'done' | 'plan_queued' | 'error' | 'lost' | 'refused' | 'connection'
  /** The code of an `error`. */
  code?: string
  /** Whether each reply to a permission request counts. */
  counted?: boolean[]
  /** How each request that the client leaves to others is decided. */
  how?: string[]
}

/** The result of a flow. `ok`: `output` fits its schema. `invalid_output`: it does not, for so many `problems`. `error`: it failed with `code`. */
export type ExpectedFlow = {
  events: number
  end: 'ok' | 'invalid_output' | 'error'
  output?: unknown
  problems?: number
  code?: string
}

/** The progress of a plan, first and after each change: how many steps are over, how many there are, the plan's state and that of each step. */
export type ExpectedPlan = { progress: string[] }

/** The permission requests of the inbox, each once, and how they were decided, as far as a client can know. */
export type ExpectedInbox = { asks: { id: string; how: string | null }[] }

/** A scenario is about a run, unless `kind` is given. */
export type Head = {
  name: string
  about: string
  /** How the client answers permission requests. Unless given it leaves each to others, and replies once it is told how that was decided. */
  permissions?: 'allow' | 'deny'
  /** Whether the client must send an Idempotency-Key, or must not. Its own choice unless given. */
  idempotency_key?: boolean
  /** The end of each line, LF unless given. */
  newline?: string
  /** Sends pieces of this size, each by itself. */
  bytes_at_once?: number
} & (
  | { kind?: undefined; expect: ExpectedRun }
  | { kind: 'flow'; expect: ExpectedFlow }
  | { kind: 'plan'; expect: ExpectedPlan }
  | { kind: 'inbox'; expect: ExpectedInbox }
)

export type RunHead = Extract<Head, { kind?: undefined }>

export const isOfRun = (head: Head): head is RunHead => head.kind === undefined

export type Answer = { status: number; headers?: Record<string, string>; body: unknown }

/** `id` is a number but for the events of a tenant. */
export type Frame = { id: number | string; event: string; data: unknown }

export type Step =
  | Frame
  /** Text, or bytes, as they are. */
  | { raw: string }
  | { hex: string }
  /** The connection breaks, or the answer ends, or nothing comes until the client leaves. */
  | { cut: true }
  | { end: true }
  | { stall: true }
  /** The client's next request. It gets a stream, unless there is another answer, or none. */
  | {
      /** `path`: the end of the path, where the client may ask for several things. */
      request: { method: 'POST' | 'GET'; path?: string; last_event_id?: string }
      answer?: Answer
      is_unanswered?: boolean
      is_bare?: boolean
    }
  /** The client replies to a permission request, and gets this status. */
  | { reply: { id: string; allow: boolean; status: number } }

export type Scenario = { head: Head; steps: Step[] }

const FOLDER = new URL('./streams/', import.meta.url)

/** All scenarios, by name. */
export function readScenarios(): Scenario[] {
  const files = readdirSync(FOLDER).filter((file) => file.endsWith('.jsonl'))
  return files.toSorted().map((file) => {
    const [head, ...steps] = readFileSync(new URL(file, FOLDER), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown)
    return { head: head as Head, steps: steps as Step[] }
  })
}
