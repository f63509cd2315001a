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

/** The progress of a run after its last complete turn, as JSON (D32.7a). */
export type RunState = {
  /** Whether the conversation contains the prompt. */
  hasBegun: boolean
  totals: StoredTotals
  agents: { started: number; spent: StoredTotals }
  /** Whether plan mode is on. */
  isPlanning: boolean
  /** The changed files that are not stored. */
  unstored?: readonly UnstoredFile[]
  /** Set when the last complete turn was the last of the run. */
  stopReason?: DoneEvent['stop_reason']
  /** How often the agent was asked to correct its answer, if it was. */
  corrections?: number
  /** The turns in which the model has read the texts that people sent to the run, in order. */
  steered?: readonly number[]
}

/** Stores the progress of a run. */
export type ProgressKeeper = {
  /** Stores the changes in the background. */
  note(): void
  /** Resolves with `true` when the changes are stored, and with `false` when the run has ended or another process has it. */
  stored(signal: AbortSignal): Promise<boolean>
}

export type EarlierProgress = { state: RunState; step?: StepState | undefined }

/** The progress of a run, from which another process can continue it. */
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
  /** The permission requests of an earlier process's sub-agents that were not made again yet. */
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

  /** Set when only the last event of the run is missing: the reason why it ends. */
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

  /** Notes that the current turn ends with a message that asks the agent to correct its answer. */
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

  /** Begins or continues the run. Returns whether the conversation already contains the prompt. */
  start(signal: AbortSignal, planMode: PlanMode | undefined): boolean {
    this.#signal = signal
    this.#planMode = planMode
    if (planMode && this.#wasPlanning !== undefined) planMode.isOn = this.#wasPlanning
    const hadBegun = this.#hasBegun
    this.#hasBegun = true
    return hadBegun
  }

  /** The model's answer of this turn, if its tool calls were already running in another process. */
  earlierStep(turn: number): Pick<StepState, 'model' | 'answer'> | undefined {
    return this.#step?.turn === turn ? this.#step : undefined
  }

  /** Called when the model has answered and its tool calls begin. */
  beginStep(turn: number, model: string, { blocks, toolCalls, outputChars, outcome, usage, spent }: StepAnswer): void {
    const answer = { blocks, toolCalls, outputChars, outcome, ...(usage && { usage }), ...(spent && { spent }) }
    this.#step = new StepProgress({ turn, model, answer, ...NO_CALLS })
  }

  endTurn(totals: Totals, stopReason: DoneEvent['stop_reason'] | undefined): void {
    this.#totals = totals
    this.#stopReason = stopReason
    this.#step = undefined
  }

  /** Returns the whole step for another process, or only its changes since the last call. */
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

  /** Drops the requests of an earlier process's sub-agents that were not made again here, because nothing waits for them. Returns their ids. */
  dropAgentAsks(): string[] {
    const dropped = this.#agentAsks.map(({ id }) => id)
    this.#agentAsks = []
    if (!this.#step || dropped.length === 0) return dropped
    this.#step.dropAgentAsks(dropped)
    this.#keeper.note()
    return dropped
  }

  /** Keeps a result only if the call may have had an effect: other calls can simply be made again. */
  end(callId: string, result: ToolResultBlock, isAnswer = false): void {
    if (!isAnswer && !this.earlier(callId)?.hasBegun) return
    this.#step?.changeCall(callId, { hasBegun: true, result })
    this.#keeper.note()
  }

  /** The note is stored with the result of the call. */
  noteFiles(files: readonly UnstoredFile[]): void {
    this.#unstored = files.slice(0, MAX_UNSTORED)
  }

  /** Notes the files whose changes by an earlier process are missing here. */
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

/** The stored usage of a run by an earlier process. */
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

/** How many missing files are named when a run continues on another machine without them. */
const MAX_UNSTORED = 100

const toStored = ({ unpriced, ...totals }: Totals): StoredTotals => ({ ...totals, unpriced: [...unpriced] })

const totalsFrom = ({ unpriced, ...totals }: StoredTotals): Totals => ({ ...totals, unpriced: new Set(unpriced) })
