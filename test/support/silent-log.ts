import { createLog } from '../../shared/kernel/log.ts'

/** Writes nothing: for parts whose log is not what a test is about. */
export const SILENT_LOG = createLog({ level: 'error', write: () => {} })
