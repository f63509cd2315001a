import { computed, signal } from '@preact/signals'
import type { Schema } from '../../../../../shared/client/api.ts'
import { isRefusal } from '../../../../../shared/client/errors.ts'
import { caller } from '../../../api/caller.ts'
import { send } from '../../../api/engine.ts'
import { upload } from '../../../api/upload.ts'
import { tell } from '../../../base/announce.ts'
import { bytes } from '../../../base/format.ts'

/** A file of a message. `source`: its bytes, if this tab has sent them. */
export type SentFile = Schema<'AttachedFile'> & { source?: Blob }

/**
 * `source`: its bytes, while the file can be sent again or shown. `kept`: the server's description, after the upload.
 * `problem`: why the file cannot be sent with the message.
 */
export type DraftFile = {
  readonly key: string
  readonly name: string
  readonly size: number
  readonly source?: Blob | undefined
  readonly share: number
  readonly kept?: Schema<'AttachedFile'>
  readonly problem?: string
  /** The file was sent with a message before, so the server may already have it: that message may have arrived although it seemed to fail. */
  readonly wasSent?: boolean
  readonly abort: AbortController
}

/**
 * The files of a message that is being written. Each file is sent as soon as it is added. The files are sent one after
 * the other, because a browser has few connections.
 */
export class DraftFiles {
  readonly list = signal<readonly DraftFile[]>([])
  /** Whether the message can be sent with all its files. */
  readonly areReady = computed(() => this.list.value.every(({ kept, problem }) => kept && problem === undefined))
  #added = 0
  #sending = Promise.resolve()

  add(files: readonly File[]): void {
    const { attachments: most } = limits()
    const free = most - this.list.peek().length
    if (files.length > free) tell(`A message takes ${most} files at most: the others are left out`, 'bad')
    for (const source of files.slice(0, free)) this.#begin(source)
  }

  remove(file: DraftFile): void {
    file.abort.abort()
    this.list.value = this.list.peek().filter(({ key }) => key !== file.key)
    if (file.kept && !file.wasSent) void send('DELETE', `/files/${file.kept.file_id}`).catch(() => {}) // It expires by itself, too.
  }

  again(file: DraftFile): void {
    this.list.value = this.list.peek().filter(({ key }) => key !== file.key)
    if (file.source instanceof File) this.#begin(file.source)
  }

  /** The message is discarded. */
  drop(): void {
    for (const file of this.list.peek()) this.remove(file)
  }

  /** Gives the files to a message that is sent. */
  take(): SentFile[] {
    const taken = this.list.peek().flatMap(({ kept, source }) => (kept ? [{ ...kept, ...(source && { source }) }] : []))
    this.list.value = []
    return taken
  }

  /** The message was refused: its files return to the draft, with the reason at the file that the server named. */
  putBack(files: readonly SentFile[], refused: Error): void {
    const [, named] = /^\/attachments\/(\d+)/.exec((isRefusal(refused, 400) && refused.param) || '') ?? []
    const back = files.map(({ source, ...kept }, i): DraftFile => {
      const file = { ...this.#newFile({ name: kept.name, size: kept.bytes, source }), share: 1, kept, wasSent: true }
      return i === Number(named ?? Number.NaN) ? { ...file, problem: refused.message } : file
    })
    this.list.value = [...back, ...this.list.peek()]
  }

  #newFile(of: Omit<DraftFile, 'key' | 'share' | 'abort'>): DraftFile {
    return { ...of, key: `file-${++this.#added}`, share: 0, abort: new AbortController() }
  }

  #begin(source: File): void {
    const problem = tooLarge(source)
    const of = { name: source.name, size: source.size, ...(problem === undefined ? { source } : { problem }) }
    const file = this.#newFile(of)
    this.list.value = [...this.list.peek(), file]
    if (problem === undefined) this.#sending = this.#sending.then(() => this.#send(file, source))
  }

  async #send({ key, abort }: DraftFile, source: File): Promise<void> {
    const { signal: removed } = abort
    if (removed.aborted) return
    try {
      const onProgress = (share: number) => this.#change(key, { share })
      const { file_id, name, media_type, bytes: size } = await upload(source, { signal: removed, onProgress })
      if (removed.aborted) void send('DELETE', `/files/${file_id}`).catch(() => {})
      else this.#change(key, { share: 1, kept: { file_id, name, media_type, bytes: size } })
    } catch (cause) {
      this.#change(key, { problem: cause instanceof Error ? cause.message : String(cause) })
    }
  }

  #change(key: string, changes: Partial<DraftFile>): void {
    this.list.value = this.list.peek().map((each) => (each.key === key ? { ...each, ...changes } : each))
  }
}

/** Why a file is not uploaded: it is larger than the server's limit. */
function tooLarge({ type, size }: File): string | undefined {
  const { image_bytes: ofImage, attachment_bytes: ofAll } = limits()
  const most = type.startsWith('image/') ? ofImage : ofAll
  return size > most ? `It has ${bytes(size)}, and a model takes ${bytes(most)} at most.` : undefined
}

const limits = () => ({ ...WITHOUT_LIMITS, ...caller().peek()?.run_limits })

/** For an older server, whose `GET /me` has no limits of files: such a server refuses a file that is too large. */
const WITHOUT_LIMITS: Readonly<Record<'attachments' | 'image_bytes' | 'attachment_bytes', number>> = {
  attachments: Number.POSITIVE_INFINITY,
  image_bytes: Number.POSITIVE_INFINITY,
  attachment_bytes: Number.POSITIVE_INFINITY,
}
