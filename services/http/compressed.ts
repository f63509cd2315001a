import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Request, Response } from 'express'

const compress = promisify(gzip)

/** A file or text that is compressed once, for the first client that accepts gzip. */
export class Compressible {
  readonly #read: () => Promise<Uint8Array>
  #gzipped: Promise<{ bytes: Buffer; etag: string }> | undefined

  constructor(read: () => Promise<Uint8Array>) {
    this.#read = read
  }

  /** Returns false and sends nothing when the client accepts no gzip. The caller has set the type. */
  async send(req: Request, res: Response): Promise<boolean> {
    res.vary('Accept-Encoding')
    if (req.acceptsEncodings('gzip', 'identity') !== 'gzip') return false
    const { bytes, etag } = await (this.#gzipped ??= this.#compress())
    res.set({ 'Content-Encoding': 'gzip', ETag: etag }).send(bytes)
    return true
  }

  async #compress(): Promise<{ bytes: Buffer; etag: string }> {
    const bytes = await compress(await this.#read())
    return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url')}"` }
  }
}
