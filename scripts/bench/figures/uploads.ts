import { once } from 'node:events'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Bench } from '../bench.ts'
import type { Figure } from '../figure.ts'
import { MASTER_KEY } from '../master-key.ts'
import { rssMiB } from '../proc.ts'
import { median } from '../statistics.ts'

const MIB = 1024 * 1024
const PARALLEL = 8
const SAMPLE_EVERY_MS = 20
const CHUNK = Buffer.alloc(64 * 1024, 0x5a)
const BOUNDARY = 'bench-upload'

/**
 * Throughput of parallel uploads through the transcription proxy to a backend, beside a server without forms, checks and keys that
 * also writes each body to a file and sends the file on. Rounds of both alternate.
 */
export const uploads: Figure = {
  name: 'uploads',
  title: `throughput of ${PARALLEL} uploads, beside a plain pipe`,
  goal: { atLeast: 0.6 },
  unit: 'x',
  measure: async (bench) => {
    const { ratios, ours, pipe, fileMiB } = await measureBoth(bench)
    const rate = (list: number[]) => `${median(list).toFixed(0)} MiB/s`
    return { value: median(ratios), detail: `pipe ${rate(pipe)}, ours ${rate(ours)}, ${PARALLEL} x ${fileMiB} MiB` }
  },
}

/** Resident memory that the same uploads add at their peak to a process that has served some before. */
export const uploadMemory: Figure = {
  name: 'upload-memory',
  title: `memory of ${PARALLEL} parallel uploads`,
  goal: { atMost: 64 },
  unit: ' MiB',
  measure: async (bench) => {
    const { before, peak, fileMiB } = await measureBoth(bench)
    const detail = `${before.toFixed(0)} to ${peak.toFixed(0)} MiB with ${PARALLEL} x ${fileMiB} MiB`
    return { value: peak - before, detail }
  },
}

type Both = { ratios: number[]; ours: number[]; pipe: number[]; before: number; peak: number; fileMiB: number }

async function measureBoth(bench: Bench): Promise<Both> {
  const fileMiB = bench.pick(160, 40)
  await using backend = await startBackend()
  await using pipe = await bench.startUploadPipe(backend.port)
  await using ours = await bench.startOurs('data-uploads', { MASTER_KEY })
  await putInstance(ours.port, backend.port)
  const oursPath = '/v1/audio/transcriptions'
  await uploadAll(ours.port, oursPath, 8 * MIB)
  await uploadAll(pipe.port, '/', 8 * MIB)
  const both: Both = { ratios: [], ours: [], pipe: [], before: rssMiB(ours.pid), peak: 0, fileMiB }
  for (let round = 0; round < bench.pick(3, 2); round += 1) {
    const sampling = setInterval(() => {
      both.peak = Math.max(both.peak, rssMiB(ours.pid))
    }, SAMPLE_EVERY_MS)
    const oursRate = await uploadAll(ours.port, oursPath, fileMiB * MIB).finally(() => clearInterval(sampling))
    const pipeRate = await uploadAll(pipe.port, '/', fileMiB * MIB)
    bench.signal.throwIfAborted()
    both.ours.push(oursRate)
    both.pipe.push(pipeRate)
    both.ratios.push(oursRate / pipeRate)
  }
  return both
}

/** Resolves with MiB per second of all uploads together. */
async function uploadAll(port: number, path: string, bytes: number): Promise<number> {
  const from = performance.now()
  await Promise.all(Array.from({ length: PARALLEL }, () => uploadOne(port, path, bytes)))
  return (PARALLEL * bytes) / MIB / ((performance.now() - from) / 1000)
}

async function uploadOne(port: number, path: string, bytes: number): Promise<void> {
  const field = (name: string, value: string) =>
    `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  const head = Buffer.from(
    `${field('provider_instance', 'backend')}${field('model', 'm')}--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n`,
  )
  const tail = Buffer.from(`\r\n--${BOUNDARY}--\r\n`)
  const body = function* () {
    yield head
    for (let left = bytes; left > 0; left -= CHUNK.length) yield CHUNK.subarray(0, Math.min(left, CHUNK.length))
    yield tail
  }
  const headers = {
    'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
    'content-length': head.length + bytes + tail.length,
  }
  const req = request({ host: '127.0.0.1', port, path, method: 'POST', headers, agent: false })
  const answered = once(req, 'response')
  await pipeline(Readable.from(body(), { objectMode: false }), req)
  const [res] = await answered
  await once(res.resume(), 'end')
  if (res.statusCode !== 200) throw new Error(`an upload was answered ${res.statusCode}`)
}

async function putInstance(port: number, backendPort: number): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/config/instances/backend`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ type: 'openai-compatible', url: `http://127.0.0.1:${backendPort}` }),
  })
  if (!response.ok) throw new Error(`the instance was answered ${response.status}`)
}

type Local = AsyncDisposable & { port: number }

/** Reads bodies and answers. */
const startBackend = (): Promise<Local> =>
  listen(createServer((req, res) => void req.resume().once('end', () => res.end('{"text":""}'))))

async function listen(server: Server): Promise<Local> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
