import type { AgentEvent } from '../../../../shared/kernel/events.ts'

export const TO_GATEWAY = 'bench:gw'
export const TO_WORKER = 'bench:wk'

export type JsonCommand =
  | { type: 'start'; stream: number; prompt: string }
  | { type: 'stop'; stream: number }
  /** The number of events that the gateway has received. */
  | { type: 'credit'; count: number }

export type JsonEvent = { stream: number; seq: number; event: AgentEvent }
