import { AppError } from '../../kernel/errors.ts'
import { fail, type ToolOutcome } from './port.ts'

/** `subject` begins the error texts: a path, an address or the tool's name, as the model wrote it. */
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
  EMFILE: 'too many files are open; try again later',
  ENFILE: 'too many files are open; try again later',
}

/** Runs a tool's work. An expected refusal and an error of the operating system become an outcome for the model; a bug is thrown. */
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

/** Replaces the message of an operating system's error, because that may contain absolute paths. */
function systemErrorText(cause: unknown): string | undefined {
  if (!(cause instanceof Error && 'code' in cause && 'syscall' in cause)) return undefined
  const code = String(cause.code)
  return SYSTEM_ERRORS[code] ?? `the operating system refused it (${code})`
}
