/**
 * If runs are stored, a one-shot run has its own internal session, which ends with it, so that another worker can continue it like the message of a
 * session (D32.7c). Clients cannot name it, because ids of sessions have no `@`.
 */
const MARK = '@'

export const oneShotSessionOf = (runId: string): string => `${MARK}${runId}`

export const isOneShotSession = (sessionId: string): boolean => sessionId.startsWith(MARK)

/** The one-shot run of an internal session. */
export const runOfOneShot = (sessionId: string): string => sessionId.slice(MARK.length)

/** The session whose log contains the run. */
export const logSessionOf = ({ sessionId, id }: { sessionId: string | undefined; id: string }): string =>
  sessionId ?? oneShotSessionOf(id)
