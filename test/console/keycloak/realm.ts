/** How long an access token is good for: the console renews one that has 30 seconds left. */
const TOKEN_SECS = 36

const PASSWORD = 'a-password'

const user = (name: string) => ({
  ...{ username: name, enabled: true, emailVerified: true, email: `${name}@example.com` },
  ...{ firstName: name, lastName: name, credentials: [{ type: 'password', value: PASSWORD }] },
})

const mapper = (name: string, protocolMapper: string, config: Record<string, string>) => ({
  ...{ name, protocol: 'openid-connect', protocolMapper },
  config: { 'access.token.claim': 'true', ...config },
})

export type Realm = { name: string; audience: string; client: string; origin: string; users: readonly string[] }

/** A realm for `--import-realm`: the console as a public client, and people whose tenants have their names. */
export const realmOf = ({ name, audience, client, origin, users }: Realm) => ({
  ...{ realm: name, enabled: true, sslRequired: 'none', accessTokenLifespan: TOKEN_SECS },
  clients: [
    {
      ...{ clientId: client, enabled: true, publicClient: true, standardFlowEnabled: true },
      ...{ redirectUris: [`${origin}/console/signed-in`], webOrigins: [origin] },
      attributes: {
        ...{ 'pkce.code.challenge.method': 'S256', 'post.logout.redirect.uris': `${origin}/console/` },
      },
      protocolMappers: [
        mapper('audience', 'oidc-audience-mapper', { 'included.custom.audience': audience }),
        mapper('tenant', 'oidc-usermodel-attribute-mapper', {
          ...{ 'user.attribute': 'username', 'claim.name': 'tenant_id', 'jsonType.label': 'String' },
        }),
      ],
    },
  ],
  users: users.map(user),
})

export { PASSWORD }
