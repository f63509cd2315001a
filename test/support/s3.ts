import { randomUUID } from 'node:crypto'
import { S3_KEYS, type S3Server, startS3 } from '../../scripts/local-services/s3.ts'
import { createEgress } from '../../shared/platform/net/egress.ts'
import { contentOf } from '../../shared/platform/objects/content.ts'
import type { ListedObject, Objects } from '../../shared/platform/objects/port.ts'
import { openS3, type S3Options, type S3Place } from '../../shared/platform/objects/s3.ts'

/** A store for tests, and a place in it that only the enclosing `describe` uses. */
export type TestS3 = {
  /** With `isOwn` a test may kill, stop and restart it. */
  readonly server: S3Server
  readonly place: S3Place
  /** The settings of a product that uses the place. */
  readonly env: Record<string, string>
  /** Opens the objects of the place, or of others. */
  open(options?: Partial<S3Options>, place?: Partial<S3Place>): Objects
}

const START_MS = 60_000

/** The server that the test files of this process share. It ends with the process. */
let shared: Promise<S3Server> | undefined

async function startShared(): Promise<S3Server> {
  const server = await startS3()
  server.unref()
  return server
}

/** Starts a store before the enclosing `describe`; with `isOwn` one of its own, which is stopped after it. */
export function useS3({ isOwn = false } = {}): TestS3 {
  let server: S3Server | undefined
  const running = () => {
    if (server === undefined) throw new Error('the store is started by the `before` hook; use it in hooks and tests')
    return server
  }
  before(async function () {
    this.timeout(START_MS)
    server = await (isOwn ? startS3() : (shared ??= startShared()))
    const objects = open()
    await objects.write('bucket', contentOf('The first object makes the bucket.'))
    await objects.close()
  })
  if (isOwn) after(async () => server?.stop())
  const prefix = `${randomUUID().slice(0, 8)}/`
  const place = () => ({ bucket: 'workspaces', prefix, region: 'us-east-1', endpoint: running().url, ...S3_KEYS })
  const open = (options: Partial<S3Options> = {}, other: Partial<S3Place> = {}) => {
    const egress = createEgress({ allowPrivate: true, idleTimeoutMs: 2_000, maxBodyBytes: Number.MAX_SAFE_INTEGER })
    return openS3({ ...place(), ...other }, { egress, ...options })
  }
  return {
    get server() {
      return running()
    },
    get place() {
      return place()
    },
    get env() {
      return {
        WORKSPACE_STORE: `s3://workspaces/${prefix}`,
        WORKSPACE_STORE_ENDPOINT: running().url,
        WORKSPACE_STORE_ACCESS_KEY: S3_KEYS.accessKey,
        WORKSPACE_STORE_SECRET_KEY: S3_KEYS.secretKey,
      }
    },
    open,
  }
}

/** Everything that is listed below a prefix. */
export async function listAll(objects: Objects, prefix: string): Promise<ListedObject[]> {
  const found: ListedObject[] = []
  for await (const each of objects.list(prefix)) found.push(each)
  return found
}
