import * as oidc from 'openid-client'
import type { Clock } from '../../shared/clock.ts'
import type { SignInProvider } from '../../shared/sign-in-provider.ts'
import { SignInFailed, type Claims, type IdentityProvider } from './sign-in.ts'

/** The identity provider, over OpenID Connect: authorization code with PKCE, state and nonce. */

/** A person waits for it. */
const TIMEOUT_SECONDS = 10
/** How long the provider's own description of itself is used. */
const METADATA_MS = 3_600_000

/** The codes of errors that the provider, or something in front of it, causes. */
const BROKEN = new Set(['OAUTH_TIMEOUT', 'OAUTH_RESPONSE_IS_NOT_CONFORM', 'OAUTH_RESPONSE_IS_NOT_JSON'])

/** Reads the provider's description at the first sign-in, so a provider that is down does not keep the service from starting. */
export function openIdentityProvider(settings: SignInProvider, clock: Clock): IdentityProvider {
  const secret = settings.clientSecret()
  let found: { readonly at: number; readonly configuration: Promise<oidc.Configuration> } | undefined

  async function discovered(): Promise<oidc.Configuration> {
    if (!found || clock.now() - found.at > METADATA_MS) found = { at: clock.now(), configuration: discover() }
    const current = found
    try {
      return await current.configuration
    } catch (cause) {
      // The next sign-in tries again.
      if (found === current) found = undefined
      throw new SignInFailed('unreachable', `${settings.name} cannot be reached for signing in.`, { cause })
    }
  }

  function discover(): Promise<oidc.Configuration> {
    const issuer = new URL(settings.issuer)
    return oidc.discovery(issuer, settings.clientId, undefined, authentication(secret), {
      timeout: TIMEOUT_SECONDS,
      // Configuration allows http:// only on this machine.
      execute: issuer.protocol === 'http:' ? [oidc.allowInsecureRequests] : [],
    })
  }

  return {
    async begin(redirectUrl) {
      const configuration = await discovered()
      const checks = {
        state: oidc.randomState(),
        nonce: oidc.randomNonce(),
        verifier: oidc.randomPKCECodeVerifier(),
      }
      const url = oidc.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUrl,
        scope: settings.scopes.join(' '),
        state: checks.state,
        nonce: checks.nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(checks.verifier),
        code_challenge_method: 'S256',
      })
      return { url: url.href, checks }
    },
    async finish(returnedTo, { state, nonce, verifier }) {
      const configuration = await discovered()
      try {
        const tokens = await oidc.authorizationCodeGrant(configuration, returnedTo, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        })
        // There is one: idTokenExpected.
        const claims = tokens.claims()!
        if (claims[settings.groupsClaim] !== undefined) return claims
        return { ...claims, ...(await userInfo(configuration, tokens.access_token, claims.sub)) }
      } catch (cause) {
        throw explained(cause, settings.name)
      }
    },
  }
}

/** Some providers keep groups out of the identity token, because they may be many. */
async function userInfo(configuration: oidc.Configuration, token: string, subject: string): Promise<Partial<Claims>> {
  if (configuration.serverMetadata().userinfo_endpoint === undefined) return {}
  return oidc.fetchUserInfo(configuration, token, subject)
}

/** In the header, as every provider must accept it, unless this one says that it only reads the body. */
function authentication(secret: string | undefined): oidc.ClientAuth {
  if (secret === undefined) return oidc.None()
  const [basic, post] = [oidc.ClientSecretBasic(secret), oidc.ClientSecretPost(secret)]
  return (server, client, body, headers) => {
    const methods = server.token_endpoint_auth_methods_supported
    const send = methods && !methods.includes('client_secret_basic') ? post : basic
    return send(server, client, body, headers)
  }
}

function explained(cause: unknown, name: string): SignInFailed {
  // The provider's own words: it did not let the person in, or it did not accept the code.
  if (cause instanceof oidc.AuthorizationResponseError || cause instanceof oidc.ResponseBodyError) {
    const reason = cause.error_description ?? cause.error
    return new SignInFailed('refused', `${name} refused the sign-in: ${reason}.`, { cause })
  }
  // fetch fails with a TypeError.
  if (cause instanceof TypeError || (cause instanceof oidc.ClientError && BROKEN.has(cause.code ?? ''))) {
    return new SignInFailed('unreachable', `${name} cannot be reached for signing in.`, { cause })
  }
  return new SignInFailed('refused', `The answer of ${name} does not belong to this sign-in. Start again.`, { cause })
}
