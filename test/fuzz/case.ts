/** What exists on the server while it is fuzzed. */
export type Fixtures = {
  /** A session with one exchange in it. */
  session: string
  /** A run that goes on for as long as the fuzzing does. */
  run: string
  /** A one-shot run that waits for a permission, and the permission's id. */
  asking: string
  permission: string
}

/** `any`: the specification leaves it open, within the promises that hold for every answer. */
export type Want = number | '2xx' | '4xx' | 'any'

/** One hostile request and the answers it must get, in order: one unless it is several requests. */
export type Case = readonly [name: string, bytes: Buffer, want: Want | readonly Want[], more?: CaseMore]

export type CaseMore = {
  /** The client closes its half behind the bytes. */
  isLast?: boolean
  /** Another answer may follow, if it keeps the promises that hold for every answer. */
  mayHaveMore?: boolean
  /** What the first answer's headers must match. */
  headers?: Record<string, RegExp>
}

export const isHead = (bytes: Buffer): boolean => bytes.toString('latin1', 0, 5) === 'HEAD '

export const meets = (status: number, want: Want): boolean =>
  want === 'any' || (typeof want === 'number' ? status === want : Math.floor(status / 100) === Number(want[0]))
