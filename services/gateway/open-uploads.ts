import { join } from 'node:path'
import { openSpool } from '../../shared/agent/transcription/spool.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import type { Egress } from '../../shared/platform/net/port.ts'
import { ownProcess } from '../wiring/process.ts'
import type { ReceiveUpload } from './bodies/upload.ts'
import { createFetchFile, type FetchFile } from './starting/fetch-file.ts'

/** What receives uploads, which share the places and the disk of this gateway. */
export type OpenedUploads = { receive: ReceiveUpload; fetchFile: FetchFile; close(): Promise<void> }

/** Opens the folder for uploads that are under way, DATA_DIR/spool, and the way out to files that requests name. */
export async function openUploads({ dataDir, ...limits }: Settings['http']['uploads']): Promise<OpenedUploads> {
  const spool = await openSpool(join(dataDir, 'spool'), ownProcess)
  const { tenantShare, uploadsPerGateway: maxUploads, uploadSpoolBytes: maxSpoolBytes } = limits
  let egress: Promise<Egress> | undefined
  const openEgress = () => {
    egress ??= import('../../shared/platform/net/egress.ts').then(({ createEgress }) =>
      createEgress({ allowPrivate: limits.allowsPrivateUrls }),
    )
    return egress
  }
  let loading: Promise<ReceiveUpload> | undefined
  return {
    async receive(...args) {
      // It takes 25 ms and 9 MiB, so it is loaded at the first upload.
      loading ??= import('./bodies/upload.ts').then(({ createReceiveUpload }) =>
        createReceiveUpload(spool.dir, { tenantShare, maxUploads, maxSpoolBytes }),
      )
      return (await loading)(...args)
    },
    fetchFile: createFetchFile(openEgress),
    async close() {
      await (await egress)?.close()
      await spool.close()
    },
  }
}
