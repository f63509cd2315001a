import { join } from 'node:path'
import { openSpool } from '../../shared/agent/transcription/spool.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import { ownProcess } from '../wiring/process.ts'
import type { ReceiveUpload } from './bodies/upload.ts'

/** What receives uploads, which share the places and the disk of this gateway. */
export type OpenedUploads = { receive: ReceiveUpload; close(): Promise<void> }

/** Opens the folder for uploads that are under way, DATA_DIR/spool. */
export async function openUploads({ dataDir, ...limits }: Settings['http']['uploads']): Promise<OpenedUploads> {
  const spool = await openSpool(join(dataDir, 'spool'), ownProcess)
  const { tenantShare, uploadsPerGateway: maxUploads, uploadSpoolBytes: maxSpoolBytes } = limits
  let loading: Promise<ReceiveUpload> | undefined
  return {
    async receive(...args) {
      // It takes 25 ms and 9 MiB, so it is loaded at the first upload.
      loading ??= import('./bodies/upload.ts').then(({ createReceiveUpload }) =>
        createReceiveUpload(spool.dir, { tenantShare, maxUploads, maxSpoolBytes }),
      )
      return (await loading)(...args)
    },
    close: spool.close,
  }
}
