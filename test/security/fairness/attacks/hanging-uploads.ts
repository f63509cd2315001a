import { setTimeout as sleep } from 'node:timers/promises'
import { call, prepare, transcriptionForm } from '../../api.ts'
import { Sink } from '../../uploads/sink.ts'
import type { Attack, AttackPlan, Tenant, Use } from '../attack.ts'
import { timed, useAtOnce } from '../neighbour.ts'

const MIB = 1024 * 1024
/** As many as there are places, and more bytes than one tenant may have (`LIMITS`). */
const HOSTILE_UPLOADS = 16
const HOSTILE_BYTES = 39 * MIB
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
async function uploadToHangingBackend(hostile: Tenant): Promise<Attack> {
  const backend = await Sink.start()
  backend.gate = new Promise<void>(() => {})
  await putBackend(hostile, backend)
  const over = new AbortController()
  const file = new Blob([Buffer.alloc(HOSTILE_BYTES)])
  const upload = () =>
    call(
      hostile.url,
      { ...TRANSCRIPTION, headers: hostile.headers, body: transcriptionForm('backend', file) },
      over.signal,
    )
  const uploads = Array.from({ length: HOSTILE_UPLOADS }, () => upload().catch(() => undefined))
  await backend.received(HOSTILE_UPLOADS / 2)
  return {
    refused: () => 0,
    async end() {
      over.abort()
      await Promise.all(uploads)
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
