import { join } from 'node:path'
import type { Log } from '../../../shared/kernel/log.ts'
import type { Form } from '../../../shared/platform/config/fields.ts'
import type { Settings } from '../../../shared/platform/config/groups.ts'
import { KEPT_KEY_FILE, keepKey, readKeptKey } from '../../../shared/tenancy/secrets/kept-key.ts'
import { createKeyring, type Keyring } from '../../../shared/tenancy/secrets/keyring.ts'

type KeySettings = Settings['tenants']['keys']

/**
 * Opens the master keys of a process. Without MASTER_KEY the standalone form keeps a key of its own in DATA_DIR; the cluster, whose
 * processes share no folder, has none (`undefined`).
 */
export async function loadKeyring(config: KeySettings, form: Form, log: Log): Promise<Keyring | undefined> {
  const { masterKey, masterKeysPrevious } = config
  if (form === 'cluster') return masterKey && createKeyring(masterKey, masterKeysPrevious)
  return masterKey ? openConfigured(config, masterKey, log) : openKept(config, log)
}

async function openConfigured(
  { masterKeysPrevious, dataDir }: KeySettings,
  masterKey: Uint8Array,
  log: Log,
): Promise<Keyring> {
  const kept = await readKeptKey(dataDir).catch(() => undefined)
  const keyring = createKeyring(masterKey, masterKeysPrevious, kept)
  if (keyring.replacedId !== undefined)
    log.warn(
      `MASTER_KEY replaces the key in ${fileIn(dataDir)}: to read what was encrypted with that one, set MASTER_KEY_PREVIOUS to the content of the file; delete the file after scripts/rewrap-keys`,
    )
  return keyring
}

/** A program that a tool starts runs as the same user, so it could read both the key and the secrets that the key decrypts. */
async function openKept(config: KeySettings, log: Log): Promise<Keyring | undefined> {
  const { dataDir, masterKeysPrevious } = config
  const file = fileIn(dataDir)
  const reader = config.isBashEnabled ? 'ENABLE_BASH' : config.mcpConfig !== undefined && 'MCP_CONFIG'
  if (reader) {
    log.warn(
      `runtime configuration and flows are disabled: MASTER_KEY is not set, and with ${reader} no key is kept in ${file}, because the programs that tools start could read it`,
    )
    return undefined
  }
  const { key, isNew } = await keepKey(dataDir)
  if (isNew)
    log.warn(
      `MASTER_KEY is not set, so tenants' keys are encrypted with a new key, which is kept in ${file}: a backup needs this file, too`,
    )
  return createKeyring(key, masterKeysPrevious)
}

const fileIn = (dataDir: string): string => join(dataDir, KEPT_KEY_FILE)
