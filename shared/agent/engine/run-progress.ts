import type { DoneEvent } from '../../kernel/events.ts'
import type { ToolResultBlock } from '../providers/port.ts'
import type { AgentReport } from '../tools/port.ts'
import { AgentTree } from './account.ts'
import {
  type AgentAsk,
  type AgentState,
  type AskingCall,
  type AskState,
  type CallProgress,
  type CallState,
  NO_CALLS,
  nameOf,
  type StepAnswer,
  type StepEntry,
  StepProgress,
  type StepState,
  type UnstoredFile,
} from './call-progress.ts'
import type { PlanMode } from './permissions.ts'
import { addSpent, startTotals, type Totals } from './usage.ts'

type StoredTotals = Omit<Totals, 'unpriced'> & { unpriced: readonly string[] }

/** How far a run is after its last complete turn, as JSON (D32.7a). */
export type RunState = {
  /** Whether the conversation contains the prompt. */
  hasBegun: boolean
  totals: StoredTotals
  agents: { started: number; spent: StoredTotals }
  /** Whether plan mode is on. */
  isPlanning: boolean
  /** The files that were changed and are not stored. */
  unstored?: readonly UnstoredFile[]
  /** Set when the last complete turn was the last of the run. */
  stopReason?: DoneEvent['stop_reason']
  /** How often the agent was asked to correct its answer, if it was. */
  corrections?: number
  /** The turns in which the model has read what people told the run, in order. */
  steered?: readonly number[]
}

/** Stores the progress of a run. */
export type ProgressKeeper = {
  /** Stores what has changed, without anybody waiting for it. */
  note(): void
  /** Resolves with `true` when it is stored, and with `false` when the run has ended or is another process's. */
  stored(signal: AbortSignal): Promise<boolean>
}

export type EarlierProgress = { state: RunState; step?: StepState | undefined }

/** The progress of a run, from which another process can go on with it. */
export class RunProgress implements CallProgress {
  readonly #keeper: ProgressKeeper
  readonly #wasPlanning: boolean | undefined
  readonly tree = new AgentTree()
  #signal = NEVER
  #planMode: PlanMode | undefined
  #hasBegun = false
  #totals = startTotals()
  #stopReason: DoneEvent['stop_reason'] | undefined
  #corrections = 0
  #step: StepProgress | undefined
  #unstored: readonly UnstoredFile[] = []
  #lostFiles: readonly string[] = []
  /** The permission requests of an earlier process's sub-agents, as far as none asks for the same now. */
  #agentAsks: readonly AgentAsk[] = []

  /** `earlier`: another process has begun the run. */
  constructor(keeper: ProgressKeeper, earlier?: EarlierProgress) {
    this.#keeper = keeper
    this.#wasPlanning = earlier?.state.isPlanning
    if (!earlier) return
    const { hasBegun, totals, agents, stopReason, unstored = [], corrections = 0 } = earlier.state
    this.#unstored = unstored
    this.#stopReason = stopReason
    this.#corrections = corrections
    this.#hasBegun = hasBegun
    this.#totals = totalsFrom(totals)
    this.tree.started = agents.started
    this.tree.spent = totalsFrom(agents.spent)
    this.#step = earlier.step && new StepProgress(earlier.step, { isStored: true })
    this.#agentAsks = earlier.step?.agentAsks ?? []
  }

  /** The totals of the complete turns. */
  get totals(): Totals {
    return this.#totals
  }

  /** Why the run has come to its end, of which only the last event is missing. */
  get stopReason(): DoneEvent['stop_reason'] | undefined {
    return this.#stopReason
  }

  /** Whether the conversation contains the prompt. */
  get hasPrompt(): boolean {
    return this.#hasBegun
  }

  /** How often the agent was asked to correct its answer. */
  get corrections(): number {
    return this.#corrections
  }

  /** The turn under way ends with a message that asks the agent to correct its answer. */
  noteCorrection(): void {
    this.#corrections++
  }

  get state(): RunState {
    const { started, spent } = this.tree
    return {
      hasBegun: this.#hasBegun,
      totals: toStored(this.#totals),
      agents: { started, spent: toStored(spent) },
      isPlanning: this.#planMode?.isOn ?? this.#wasPlanning ?? false,
      ...(this.#unstored.length > 0 && { unstored: this.#unstored }),
      ...(this.#stopReason && { stopReason: this.#stopReason }),
      ...(this.#corrections > 0 && { corrections: this.#corrections }),
    }
  }

  /** Begins the run, or goes on with it. Returns whether the conversation contains the prompt already. */
  start(signal: AbortSignal, planMode: PlanMode | undefined): boolean {
    this.#signal = signal
    this.#planMode = planMode
    if (planMode && this.#wasPlanning !== undefined) planMode.isOn = this.#wasPlanning
    const hadBegun = this.#hasBegun
    this.#hasBegun = true
    return hadBegun
  }

  /** The model's answer of this turn, whose tool calls were under way in another process. */
  earlierStep(turn: number): Pick<StepState, 'model' | 'answer'> | undefined {
    return this.#step?.turn === turn ? this.#step : undefined
  }

  /** The model has answered, and its tool calls begin. */
  beginStep(turn: number, model: string, { blocks, toolCalls, outputChars, outcome, usage, spent }: StepAnswer): void {
    const answer = { blocks, toolCalls, outputChars, outcome, ...(usage && { usage }), ...(spent && { spent }) }
    this.#step = new StepProgress({ turn, model, answer, ...NO_CALLS })
  }

  endTurn(totals: Totals, stopReason: DoneEvent['stop_reason'] | undefined): void {
    this.#totals = totals
    this.#stopReason = stopReason
    this.#step = undefined
  }

  /** What another process needs of the step: all of it, or only what has changed since it was taken last. */
  takeStep(isWhole: boolean): StepEntry | undefined {
    return this.#step?.take(isWhole)
  }

  earlier(callId: string): CallState | undefined {
    return this.#step?.call(callId)
  }

  begin(callId: string): Promise<boolean> {
    this.#step?.changeCall(callId, { hasBegun: true })
    return this.#keeper.stored(this.#signal)
  }

  earlierAsk({ id }: AskingCall): AskState | undefined {
    return this.earlier(id)?.ask
  }

  ask({ id }: AskingCall, ask: AskState): Promise<boolean> {
    this.#step?.changeCall(id, { ask })
    return this.#keeper.stored(this.#signal)
  }

  /** The ids of the requests that sub-agents of an earlier process have made, and those of this one have not made again: nobody waits for them. */
  dropAgentAsks(): string[] {
    const dropped = this.#agentAsks.map(({ id }) => id)
    this.#agentAsks = []
    if (!this.#step || dropped.length === 0) return dropped
    this.#step.dropAgentAsks(dropped)
    this.#keeper.note()
    return dropped
  }

  /** The result of a call that had no effect is not needed: the call is made again. */
  end(callId: string, result: ToolResultBlock, isAnswer = false): void {
    if (!isAnswer && !this.earlier(callId)?.hasBegun) return
    this.#step?.changeCall(callId, { hasBegun: true, result })
    this.#keeper.note()
  }

  /** It is stored with the result of the call. */
  noteFiles(files: readonly UnstoredFile[]): void {
    this.#unstored = files.slice(0, MAX_UNSTORED)
  }

  /** Files that an earlier process had changed are not here. */
  loseFiles(paths: readonly string[]): void {
    this.#lostFiles = paths
  }

  takeLostFiles(): readonly string[] {
    const lost = this.#lostFiles
    this.#lostFiles = []
    return lost
  }

  earlierAgent(key: string): AgentState | undefined {
    return this.#step?.agent(key)
  }

  endAgent(key: string, report: AgentReport): void {
    this.#step?.changeAgent(key, { report })
    this.#keeper.note()
  }

  ofAgent(key: string): CallProgress {
    const child: CallProgress = {
      ...NOTHING_EARLIER,
      begin: () => {
        this.#step?.changeAgent(key, {})
        return this.#keeper.stored(this.#signal)
      },
      earlierAsk: (call) => {
        const found = this.#agentAsks.find((ask) => ask.call === nameOf(call))
        this.#agentAsks = this.#agentAsks.filter((ask) => ask !== found)
        return found
      },
      ask: (call, ask) => {
        this.#step?.addAgentAsk({ ...ask, call: nameOf(call) })
        return this.#keeper.stored(this.#signal)
      },
      noteFiles: (files) => this.noteFiles(files),
      ofAgent: () => child,
    }
    return child
  }
}

/** What an earlier process has used of a run, as far as it is stored. */
export function spentBefore({ state: { totals, agents }, step }: EarlierProgress): Totals {
  const { usage, costUsd } = agents.spent
  const spent = addSpent(totalsFrom(totals), usage, costUsd)
  const turn = step?.answer.spent
  return turn ? addSpent(spent, turn.usage, turn.price ?? 0) : spent
}

const NEVER = new AbortController().signal

const NOTHING_EARLIER = {
  earlier: () => undefined,
  end() {},
  takeLostFiles: () => [],
  earlierAgent: () => undefined,
  endAgent() {},
}

/** So many files are known by their names when a run goes on elsewhere without them. */
const MAX_UNSTORED = 100

const toStored = ({ unpriced, ...totals }: Totals): StoredTotals => ({ ...totals, unpriced: [...unpriced] })

const totalsFrom = ({ unpriced, ...totals }: StoredTotals): Totals => ({ ...totals, unpriced: new Set(unpriced) })
