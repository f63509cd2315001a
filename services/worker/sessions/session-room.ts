import { type AppError, tooMany } from '../../../shared/kernel/errors.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { type ShareLimits, TenantShares } from '../../../shared/platform/fairness/tenant-shares.ts'

export type RoomLimits = {
  sessions: ShareLimits
  /** Limits of the bytes of all sessions' conversations. */
  memory: ShareLimits
}

/** The place of one session in the room. */
export type SessionPlace = {
  /** Sets the size of the session's conversation. */
  resize(bytes: number): void
  /** Frees the place and the bytes. Later calls do nothing. */
  leave(): void
}

/** The place of a session that counts towards no limit. */
export const NO_PLACE: SessionPlace = { resize() {}, leave() {} }

const FULL_RETRY_SECS = 60

/** How many sessions a worker holds and how large their conversations are, in total and per tenant (D1.3 SESSIONS_PER_WORKER, SESSION_MEMORY_MB). */
export class SessionRoom {
  readonly #sessions: TenantShares
  readonly #memory: TenantShares

  constructor({ sessions, memory }: RoomLimits) {
    this.#sessions = new TenantShares(sessions)
    this.#memory = new TenantShares(memory)
  }

  /** Throws `rate_limit` when the tenant cannot have another session here. */
  checkSession(tenant: TenantId): void {
    const full = this.#sessions.exceeded(tenant, 1)
    if (full) throw refusalOf(full, NO_SESSION)
    this.checkMemory(tenant)
  }

  /** Throws `rate_limit` when the conversations of the tenant, or of all, are as large as they may be. */
  checkMemory(tenant: TenantId): void {
    const full = this.#memory.exceeded(tenant, 1)
    if (full) throw refusalOf(full, NO_MEMORY)
  }

  /** Takes a place, even above the limits: a session that another worker hands over must not be lost. */
  enter(tenant: TenantId): SessionPlace {
    let held = 0
    let isInside = true
    const resize = (bytes: number) => {
      if (!isInside) return
      this.#memory.add(tenant, bytes - held)
      held = bytes
    }
    this.#sessions.add(tenant, 1)
    return {
      resize,
      leave: () => {
        if (!isInside) return
        resize(0)
        isInside = false
        this.#sessions.add(tenant, -1)
      },
    }
  }
}

const NO_SESSION = {
  all: 'this server has no room for another session; delete one, or try again later',
  tenant: 'this tenant has its share of the sessions here; delete one, or try again later',
}

const NO_MEMORY = {
  all: 'the conversations on this server are as large as they may be; delete a session, or try again later',
  tenant: 'the conversations of this tenant are as large as they may be here; delete a session, or try again later',
}

const refusalOf = (full: 'all' | 'tenant', texts: Record<'all' | 'tenant', string>): AppError =>
  tooMany(texts[full], FULL_RETRY_SECS)
