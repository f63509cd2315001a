import { AppError } from '../errors.ts'
import { fail, type ToolOutcome } from './port.ts'

/** A call: what it is about, as the model wrote it, and the run's signal. */
type Attempt = { subject: string; signal: AbortSignal }

const SYSTEM_ERRORS: Record<string, string> = {
  ENOENT: 'no such file or folder',
  ENOTDIR: 'a part of the path is a file, not a folder',
  EISDIR: 'this is a folder, not a file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENAMETOOLONG: 'the name is too long',
  ELOOP: 'too many symbolic links',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EMFILE: 'too many open files; try again later',
  ENFILE: 'too many open files; try again later',
}

/** Runs a tool's work. A refusal and what the operating system says become text for the model; a bug stays a throw. */
export async function attempt({ subject, signal }: Attempt, work: () => Promise<ToolOutcome>): Promise<ToolOutcome> {
  try {
    signal.throwIfAborted()
    return await work()
  } catch (cause) {
    if (signal.aborted) return fail('The call was stopped because the run ended.')
    if (cause instanceof AppError && cause.kind !== 'internal') return fail(cause.message)
    const text = systemErrorText(cause)
    if (text === undefined) throw cause
    return fail(`${subject}: ${text}.`)
  }
}

/** Own words for an operating system's error: its message would hold absolute paths. */
function systemErrorText(cause: unknown): string | undefined {
  if (!(cause instanceof Error && 'code' in cause && 'syscall' in cause)) return undefined
  const code = String(cause.code)
  return SYSTEM_ERRORS[code] ?? `the system refused it (${code})`
}
