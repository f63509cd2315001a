import { caller } from '../api/caller.ts'
import { needsToken } from '../api/engine.ts'
import { withTokens } from './start.ts'

/** The tenant and subject of the person, the server, and the scopes of the token. */
export function WhoIsHere() {
  const me = caller().value
  const facts = {
    Tenant: me?.tenant,
    You: me?.subject,
    Host: location.host,
    Version: me?.version,
    May: me?.scopes.join(', '),
  }
  return (
    <div>
      <dl class="facts small who-facts">
        {Object.entries(facts).map(([name, value]) => [
          <dt key={name}>{name}</dt>,
          <dd key={`${name} value`}>{value}</dd>,
        ])}
      </dl>
      {needsToken() && (
        <button type="button" class="button plain" onClick={() => void withTokens().then(({ signOut }) => signOut())}>
          Sign out
        </button>
      )}
    </div>
  )
}
