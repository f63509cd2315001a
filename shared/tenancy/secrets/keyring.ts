import { createHash, createSecretKey, type KeyObject } from 'node:crypto'

/** A master key and the id under which sealed records name it. */
export type MasterKey = { id: string; key: KeyObject }

/** The master keys of a process: new records are sealed under `primary`, older ones may still name another. */
export type Keyring = {
  primary: MasterKey
  find(id: string): MasterKey | undefined
  /** The id of the key in DATA_DIR that MASTER_KEY has replaced, if it is not in the ring. */
  replacedId?: string
}

/** Builds the keyring from MASTER_KEY and MASTER_KEY_PREVIOUS (D1.3); each key has 32 bytes. */
export function createKeyring(
  primary: Uint8Array,
  previous: readonly Uint8Array[] = [],
  replaced?: Uint8Array,
): Keyring {
  const keys = [primary, ...previous].map(toMasterKey)
  const byId = new Map(keys.map((each) => [each.id, each]))
  const replacedId = replaced && toMasterKey(replaced).id
  const isReplaced = replacedId !== undefined && !byId.has(replacedId)
  return { primary: toMasterKey(primary), find: (id) => byId.get(id), ...(isReplaced && { replacedId }) }
}

const ID_PREFIX = 'agent-engine master key\0'

/** The id is derived from the key, so that no setting can pair a key with the wrong id. It reveals nothing about the key. */
function toMasterKey(bytes: Uint8Array): MasterKey {
  const id = createHash('sha256').update(ID_PREFIX).update(bytes).digest('hex').slice(0, 16)
  return { id: `mk_${id}`, key: createSecretKey(bytes) }
}
