import type { Files } from '../../shared/agent/files/files.ts'

/** The files of tenants that have none, and name none. */
export const NO_FILES: Pick<Files, 'attached' | 'read'> = { attached: async () => [], read: async () => undefined }
