import { join } from 'node:path'
import { openSpool } from '../../shared/agent/transcription/spool.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import type { Egress } from '../../shared/platform/net/port.ts'
import type { UploadLine } from '../../shared/tenancy/limits/upload-line.ts'
import { ownProcess } from '../wiring/process.ts'
import type { EnterUpload } from './bodies/tus.ts'
import type { ReceiveUpload } from './bodies/upload.ts'
import { createFetchFile, type FetchFile } from './starting/fetch-file.ts'

/** Receives uploads, which share the places and the disk of this gateway. `enter` takes a place for uploads that need no disk. */
export type OpenedUploads = {
  receive: ReceiveUpload
  enter: EnterUpload
  fetchFile: FetchFile
  close(): Promise<void>
}

/** Opens the folder for uploads that are under way, DATA_DIR/spool, and the outgoing HTTP client for files that requests name by URL. */
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
  let loading: Promise<{ receive: ReceiveUpload; line: UploadLine }> | undefined
  const load = () => {
    // Loading it takes 25 ms and 9 MiB, so it is loaded at the first upload.
    loading ??= import('./bodies/upload.ts').then(({ createReceiveUpload, createUploadLine }) => {
      const given = { tenantShare, maxUploads, maxSpoolBytes }
      const line = createUploadLine(given)
      return { line, receive: createReceiveUpload(spool.dir, given, line) }
    })
    return loading
  }
  return {
    receive: async (...args) => (await load()).receive(...args),
    enter: async (tenant, signal) => (await load()).line.enter({ tenant, bytes: 0 }, signal),
    fetchFile: createFetchFile(openEgress),
    async close() {
      await (await egress)?.close()
      await spool.close()
    },
  }
}
