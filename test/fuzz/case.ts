/** Sessions and runs that exist on the server during the fuzzing. */
export type Fixtures = {
  /** A session with one exchange in it. */
  session: string
  /** A run that lasts as long as the fuzzing. */
  run: string
  /** A one-input run that waits for a permission, and the permission's id. */
  asking: string
  permission: string
  /** A published flow with an entry in its memory, and one run of it. */
  flow: string
  trace: string
  entry: string
  /** A plan that is done. */
  plan: string
}

/** Expected status. `any`: the specification does not say; the rules for every answer still apply. */
export type Want = number | '2xx' | '4xx' | 'any'

/** A hostile request and the expected answers in order: one, unless the bytes hold several requests. */
export type Case = readonly [name: string, bytes: Buffer, want: Want | readonly Want[], more?: CaseMore]

export type CaseMore = {
  /** The client half-closes the connection after the bytes. */
  isLast?: boolean
  /** Another answer may follow, if it keeps the rules for every answer. */
  mayHaveMore?: boolean
  /** Patterns for headers of the first answer. */
  headers?: Record<string, RegExp>
}

export const isHead = (bytes: Buffer): boolean => bytes.toString('latin1', 0, 5) === 'HEAD '

export const meets = (status: number, want: Want): boolean =>
  want === 'any' || (typeof want === 'number' ? status === want : Math.floor(status / 100) === Number(want[0]))
