import { setTimeout as sleep } from 'node:timers/promises'
import { prepare, transcriptionForm } from '../../api.ts'
import { Sink } from '../../uploads/sink.ts'
import { type Uploaded, type UploadSpec, upload } from '../../uploads/uploader.ts'
import type { Attack, AttackPlan, Surroundings, Tenant, Use } from '../attack.ts'
import { timed, useAtOnce } from '../neighbour.ts'

const MIB = 1024 * 1024
const PLACES = 8
/** Twice as many as there are places, and more bytes than one tenant may have (`LIMITS`). In the short form one holds most of them, which it hardly sends. */
const HOSTILE_UPLOADS = { short: 15, full: 16 }
const HOSTILE_BYTES = { short: 5 * MIB, full: 39 * MIB }
const SLOW = { bytes: 284 * MIB, pausesFrom: 16 * MIB, pauseMs: 1_000 }
const OTHER_BYTES = MIB
const BACKEND_MS = 250

/** The places for uploads, and the disk below them. */
export const HANGING_UPLOADS: AttackPlan = {
  title: 'hanging uploads',
  begin: uploadToHangingBackend,
  prepare: transcribe,
  isShared: true,
}

/** Resolves when the backend, which never answers, has as many uploads as the server lets through. */
async function uploadToHangingBackend(hostile: Tenant, { size }: Surroundings): Promise<Attack> {
  const backend = await Sink.start()
  backend.gate = new Promise<void>(() => {})
  await putBackend(hostile, backend)
  const over = new AbortController()
  /** The attacks before may have used up the requests of the minute: what is refused for that is sent again. */
  const begin = async (spec: Pick<UploadSpec, 'bytes' | 'pausesFrom' | 'pauseMs' | 'onPause'>): Promise<Uploaded> => {
    const uploaded = await upload({ ...hostile, instance: 'backend', signal: over.signal, ...spec })
    if (uploaded.status !== 429 || over.signal.aborted) return uploaded
    await sleep(1_000, undefined, { signal: over.signal }).catch(() => {})
    return over.signal.aborted ? uploaded : begin(spec)
  }
  const slow: Promise<Uploaded>[] = []
  if (size === 'short') await new Promise<void>((onPause) => slow.push(begin({ ...SLOW, onPause })))
  const uploads = Array.from({ length: HOSTILE_UPLOADS[size] }, () => begin({ bytes: HOSTILE_BYTES[size] }))
  await backend.received(PLACES - slow.length)
  return {
    refused: () => 0,
    async end() {
      over.abort()
      await Promise.all([...slow, ...uploads])
      await backend[Symbol.asyncDispose]()
    },
  }
}

/** Sends recordings to a backend that works for a moment. */
async function transcribe(other: Tenant): Promise<Use> {
  const backend = await Sink.start()
  await putBackend(other, backend)
  const file = new Blob([Buffer.alloc(OTHER_BYTES)])
  return (rounds) =>
    useAtOnce(async (measured) => {
      for (let round = 0; round < rounds; round++) {
        backend.gate = sleep(BACKEND_MS)
        await timed(other, { ...TRANSCRIPTION, body: transcriptionForm('backend', file) }, measured)
      }
    })
}

const TRANSCRIPTION = { method: 'POST', path: '/audio/transcriptions' }

function putBackend({ url, headers }: Tenant, backend: Sink) {
  const body = { type: 'openai-compatible', url: backend.url, key: 'k' }
  return prepare(url, { method: 'PUT', path: '/config/instances/backend', headers, body })
}
