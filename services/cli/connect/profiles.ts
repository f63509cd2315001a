import { chmod, mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { CliError, EXIT } from '../exit-codes.ts'

/** A server and how to sign in there. */
export type Profile = {
  url: string
  token?: string
  /** Set for a token that was issued to this machine. */
  renewal?: { refresh_token: string; token_endpoint: string; client_id: string; expires_at: number }
}

export type Profiles = { current: string; profiles: Record<string, Profile> }

type Env = Readonly<Record<string, string | undefined>>

export const DEFAULT_PROFILE = 'default'

/** The file of profiles in the XDG folder for configuration. */
export const profilesFile = (env: Env): string =>
  join(env['XDG_CONFIG_HOME'] || join(env['HOME'] || homedir(), '.config'), 'agent-engine', 'profiles.json')

/** The profiles; none when there is no file. Throws if other users may read the file, because it contains tokens. */
export async function readProfiles(env: Env): Promise<Profiles> {
  const file = profilesFile(env)
  try {
    const { mode } = await stat(file)
    if ((mode & 0o077) !== 0) throw new CliError(EXIT.settings, `${file} may be read by others`, `chmod 600 ${file}`)
    return checked(JSON.parse(await readFile(file, 'utf8')), file)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return { current: DEFAULT_PROFILE, profiles: {} }
    if (cause instanceof CliError) throw cause
    throw new CliError(EXIT.settings, `${file} cannot be read: ${(cause as Error).message}`)
  }
}

/** Replaces the stored profiles. Only the owner can read the file. */
export async function writeProfiles(env: Env, profiles: Profiles): Promise<void> {
  const file = profilesFile(env)
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const next = `${file}.new`
  await writeFile(next, `${JSON.stringify(profiles, null, 2)}\n`, { mode: 0o600 })
  await chmod(next, 0o600) // It may have been there.
  await rename(next, file)
}

function checked(value: unknown, file: string): Profiles {
  const { current, profiles } = (value ?? {}) as Partial<Profiles>
  const isWhole = typeof current === 'string' && typeof profiles === 'object' && profiles !== null
  if (isWhole && Object.values(profiles).every((each) => typeof each?.url === 'string')) return { current, profiles }
  throw new CliError(EXIT.settings, `${file} is not a file of profiles`, 'Remove it and sign in again with `ae login`.')
}
