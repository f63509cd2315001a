import { createHash } from 'node:crypto'
import type { JsonObject } from '../../kernel/events.ts'
import type { ToolResultBlock } from '../providers/port.ts'
import type { AgentReport } from '../tools/port.ts'
import type { SpentTurn } from './account.ts'
import type { Answer } from './turn.ts'

/** A permission request, so that another process can wait for the same decision. */
export type AskState = { id: string; created_at: string; expires_at: string }

/** A tool call that needs a permission. */
export type AskingCall = { id: string; toolName: string; input: JsonObject }

/**
 * A permission request of a sub-agent. `call`: the name and input of its tool call, by which the request is recognized
 * when the sub-agent is repeated.
 */
export type AgentAsk = AskState & { call: string }

/** The stored state of a tool call. `hasBegun`: it may have had an effect. */
export type CallState = { ask?: AskState; hasBegun?: true; result?: ToolResultBlock }

/** The stored state of a sub-agent. Without a report it may have had an effect. */
export type AgentState = { report?: AgentReport }

/** A file whose changes are on this machine only. `mtimeMs` is its time since 1970, as whole milliseconds. */
export type UnstoredFile = { path: string; mtimeMs: number }

/** What an agent's tool calls store before they have an effect. */
export interface CallProgress {
  earlier(callId: string): CallState | undefined
  /** Notes that the call may have an effect from now on. Resolves with `false` when the call must not run. */
  begin(callId: string): Promise<boolean>
  /** The request of an earlier process for the same call. A repeated sub-agent's calls have new ids, so there an equal call counts. */
  earlierAsk(call: AskingCall): AskState | undefined
  /** Notes that the client is about to be asked. Resolves with `false` when it must not be asked. */
  ask(call: AskingCall, ask: AskState): Promise<boolean>
  /** Notes the result of a call. With `isAnswer`, the client has executed the call: its answer is kept although `begin` was not called. */
  end(callId: string, result: ToolResultBlock, isAnswer?: boolean): void
  /** Notes, after a call that may have changed files, the files whose newest content is not stored. */
  noteFiles(files: readonly UnstoredFile[]): void
  /** Returns, once, the files whose changes by an earlier process are missing here. */
  takeLostFiles(): readonly string[]
  earlierAgent(key: string): AgentState | undefined
  endAgent(key: string, report: AgentReport): void
  /** The progress of a sub-agent. It is not stored turn by turn: a sub-agent without effects is repeated from its start. */
  ofAgent(key: string): CallProgress
}

/** The turn whose tool calls are running. */
export type StepState = {
  turn: number
  model: string
  answer: Pick<Answer, 'blocks' | 'toolCalls' | 'outputChars' | 'outcome' | 'usage'> & { spent?: SpentTurn }
  calls: { readonly [callId: string]: CallState }
  /** By the id of the call and the number of the sub-agent in it. */
  agents: { readonly [key: string]: AgentState }
  /** The permission requests of sub-agents. */
  agentAsks: readonly AgentAsk[]
}

/** The step, or its changes since the last entry. */
export type StepEntry = Omit<StepState, 'model' | 'answer'> & Partial<Pick<StepState, 'model' | 'answer'>>

export type StepAnswer = Answer & { spent?: SpentTurn }

/** The calls of a new step. */
export const NO_CALLS = { calls: {}, agents: {}, agentAsks: [] }

/** The turn whose tool calls are running, and its changes since `take` was called last. */
export class StepProgress {
  readonly turn: number
  readonly model: string
  readonly answer: StepState['answer']
  readonly #calls: Map<string, CallState>
  readonly #agents: Map<string, AgentState>
  #agentAsks: readonly AgentAsk[]
  #isStored: boolean
  /** The calls and sub-agents, by their keys, and the requests of sub-agents, by their ids. */
  #changed = new Set<string>()

  /** `isStored`: an earlier process has begun the turn. */
  constructor({ turn, model, answer, calls, agents, agentAsks }: StepState, { isStored } = { isStored: false }) {
    this.turn = turn
    this.model = model
    this.answer = answer
    this.#calls = new Map(Object.entries(calls))
    this.#agents = new Map(Object.entries(agents))
    this.#agentAsks = agentAsks
    this.#isStored = isStored
  }

  call(id: string): CallState | undefined {
    return this.#calls.get(id)
  }

  agent(key: string): AgentState | undefined {
    return this.#agents.get(key)
  }

  changeCall(id: string, change: CallState): void {
    this.#calls.set(id, { ...this.#calls.get(id), ...change })
    this.#changed.add(id)
  }

  changeAgent(key: string, change: AgentState): void {
    this.#agents.set(key, { ...this.#agents.get(key), ...change })
    this.#changed.add(key)
  }

  addAgentAsk(ask: AgentAsk): void {
    this.#agentAsks = [...this.#agentAsks, ask]
    this.#changed.add(ask.id)
  }

  dropAgentAsks(ids: readonly string[]): void {
    this.#agentAsks = this.#agentAsks.filter(({ id }) => !ids.includes(id))
    for (const id of ids) this.#changed.add(id)
  }

  /** The entry from which another process continues the step: the whole step, or the calls that have changed since the last entry. `undefined`: none has. */
  take(isWhole: boolean): StepEntry | undefined {
    if (this.#changed.size === 0 && !(isWhole && this.#isStored)) return undefined
    const { turn, model, answer } = this
    const [isAll, changed] = [isWhole || !this.#isStored, this.#changed]
    const only = <T>(from: Map<string, T>) => Object.fromEntries([...from].filter(([key]) => isAll || changed.has(key)))
    this.#changed = new Set()
    this.#isStored = true
    const calls = { calls: only(this.#calls), agents: only(this.#agents), agentAsks: this.#agentAsks }
    return { turn, ...(isAll && { model, answer }), ...calls }
  }
}

/** A name that is the same for equal calls. It is hashed, because a call's input may be long. */
export const nameOf = ({ toolName, input }: AskingCall): string =>
  createHash('sha256')
    .update(`${toolName} ${JSON.stringify(input)}`)
    .digest('base64')
