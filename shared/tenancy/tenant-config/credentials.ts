import { AppError, invalidRequest } from '../../kernel/errors.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { quoted } from '../../kernel/text.ts'
import type { Keyring } from '../secrets/keyring.ts'
import { unseal } from '../secrets/seal.ts'
import type { InstanceMaterial, StoredInstance, StoredSecret, TenantConfig } from './config.ts'
import { openMaterial } from './settings.ts'

/** The key that a call to an instance sends, and the extra headers with their real values. */
export type Credentials = { key: string | undefined; headers: Readonly<Record<string, string>> }

/** Decrypts the credentials of a tenant's instances. A decrypted value is kept as long as the stored one is the same object. */
export class CredentialReader {
  readonly #keyring: Keyring
  readonly #materials = new WeakMap<StoredInstance, InstanceMaterial>()
  readonly #secrets = new WeakMap<StoredSecret, string>()

  constructor(keyring: Keyring) {
    this.#keyring = keyring
  }

  /** Throws `unavailable` when a stored key cannot be decrypted, or the secret that the instance names is gone. */
  read(tenant: TenantId, instance: StoredInstance, { secrets }: TenantConfig): Credentials {
    const { key, headers = {} } = this.#material(tenant, instance)
    if (instance.secret === undefined) return { key, headers }
    const secret = secrets.find(({ name }) => name === instance.secret)
    if (!secret) throw secretGone(instance)
    return { key: this.#secret(tenant, secret), headers }
  }

  #material(tenant: TenantId, instance: StoredInstance): InstanceMaterial {
    if (!instance.sealed) return {}
    const known = this.#materials.get(instance)
    if (known) return known
    const material = openMaterial(instance.sealed, { tenant, kind: 'instance', name: instance.name }, this.#keyring)
    this.#materials.set(instance, material)
    return material
  }

  #secret(tenant: TenantId, secret: StoredSecret): string {
    const known = this.#secrets.get(secret)
    if (known !== undefined) return known
    const key = unseal(secret.sealed, { tenant, kind: 'secret', name: secret.name }, this.#keyring)
    this.#secrets.set(secret, key)
    return key
  }
}

const secretGone = ({ name, secret }: StoredInstance) =>
  new AppError(
    'unavailable',
    `instance ${name} names the secret ${secret}, which does not exist: store it with PUT /config/secrets/${secret}`,
    { code: 'secret_missing' },
  )

/**
 * The instance that a request means (api.md "Named flows"): the one of this name, else the only one of this type. Throws
 * `invalid_request` when there is none, or several of the type.
 */
export function resolveInstance({ instances }: TenantConfig, nameOrType: string, param: string): StoredInstance {
  const named = instances.find(({ name }) => name === nameOrType)
  if (named) return named
  const [first, second] = instances.filter(({ type }) => type === nameOrType)
  if (first && second) {
    throw invalidRequest(`several instances are of type ${quoted(nameOrType)}: give the name of one`, { param })
  }
  if (first) return first
  throw invalidRequest(`no instance is named ${quoted(nameOrType)}: create it with PUT /config/instances/{name}`, {
    param,
  })
}
