import type { Config } from '../../shared/platform/config/config.ts'

/** Something that is wrong, and what to do about it, or something to know. No text holds a secret. */
export type Finding = { problem: string; cure: string } | { note: string }

/** The installation that is checked. `isCluster` is false for the standalone form, which has neither Redis nor MongoDB. */
export type Patient = {
  config: Config
  isCluster: boolean
  /** The address that clients use, with the base path; `undefined` leaves out what needs it. */
  publicUrl: string | undefined
  /** An access token for it. */
  token: string | undefined
}

/** Looks for faults of one kind. Throws only for what it cannot explain. */
export type Check = (patient: Patient) => Promise<Finding[]>

/** The reason of a failure in one line. */
export const reasonOf = (cause: unknown): string =>
  (cause instanceof Error ? cause.message : String(cause)).split('\n')[0] ?? ''

/** A finding for an address that does not answer. */
export const unreachable = (what: string, cause: unknown): Finding[] => [
  { problem: `${what} does not answer: ${reasonOf(cause)}`, cure: 'correct the address, or let this machine reach it' },
]
