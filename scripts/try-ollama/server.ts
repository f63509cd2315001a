import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { type Installed, MODEL, shell } from './install.ts'

export type Ollama = AsyncDisposable & { url: string }

/** Starts the server on a free port, with its models in the folder. */
export async function startOllama({ program, modelfile }: Installed, folder: string, window?: string): Promise<Ollama> {
  const host = `127.0.0.1:${await freePort()}`
  const env = {
    OLLAMA_HOST: host,
    OLLAMA_MODELS: join(folder, 'models'),
    HOME: folder,
    ...(window !== undefined && { OLLAMA_CONTEXT_LENGTH: window }),
  }
  const server = spawn(program, ['serve'], { env: { ...process.env, ...env }, stdio: 'ignore' })
  const url = `http://${host}`
  await untilReady(url)
  await shell(`${program} create ${MODEL} -f ${modelfile} >/dev/null 2>&1`, folder, env)
  return {
    url,
    async [Symbol.asyncDispose]() {
      server.kill()
      await once(server, 'close')
    },
  }
}

const READY_WITHIN_MS = 30_000

async function untilReady(url: string): Promise<void> {
  for (const endsAt = Date.now() + READY_WITHIN_MS; Date.now() < endsAt; ) {
    if ((await fetch(url).catch(() => undefined))?.ok) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error('Ollama does not answer')
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  await once(probe, 'close')
  return typeof address === 'object' && address ? address.port : 0
}
