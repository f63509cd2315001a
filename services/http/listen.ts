import type { AddressInfo } from 'node:net'
import type { HttpServer } from './server.ts'

type Place = { host: string; port: number; setting: 'PORT' | 'OPS_PORT' }

/** Listens at the address of a setting. The error for an unusable address names the setting and the remedy. */
export async function listenOn(
  server: Pick<HttpServer, 'listen'>,
  { host, port, setting }: Place,
): Promise<AddressInfo> {
  try {
    return await server.listen(port, host)
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
    const cure = CURES[code]?.(setting)
    throw cure === undefined ? cause : new Error(`${host}:${port} ${cure}`, { cause })
  }
}

const CURES: Record<string, (setting: string) => string> = {
  EADDRINUSE: (setting) => `is in use: set ${setting} to a free port, or to 0 for any`,
  EACCES: (setting) => `may not be used by this user: set ${setting} to a port above 1023`,
  EADDRNOTAVAIL: () => 'is no address of this machine: set HOST to one of its addresses',
}
