/**
 * Where runs are stored, a one-shot run has a session to itself, which ends with it, so that another worker goes on with it as with the message of a session
 * (D32.7c). No client can name it: ids of sessions have no `@`.
 */
const MARK = '@'

export const oneShotSessionOf = (runId: string): string => `${MARK}${runId}`

export const isOneShotSession = (sessionId: string): boolean => sessionId.startsWith(MARK)

/** The run that has this session to itself. */
export const runOfOneShot = (sessionId: string): string => sessionId.slice(MARK.length)

/** The session whose log has the run. */
export const logSessionOf = ({ sessionId, id }: { sessionId: string | undefined; id: string }): string =>
  sessionId ?? oneShotSessionOf(id)
