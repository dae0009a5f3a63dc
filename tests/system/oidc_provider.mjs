// A provider of OpenID Connect on loopback: the npm package oidc-provider, with pages of its own to sign in by any password.
//
// Gets its settings as JSON in the first argument: {port, client_id, client_secret, callback}. Prints one line once it
// listens. Whoever signs in with a name that begins with "ops" is in the group ops.
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const settings = JSON.parse(process.argv[2]);
const issuer = `http://127.0.0.1:${settings.port}`;

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: settings.client_id,
      client_secret: settings.client_secret,
      redirect_uris: [settings.callback],
      id_token_signed_response_alg: settings.algorithm,
    },
  ],
  claims: { openid: ['sub'], profile: ['preferred_username'], groups: ['groups'] },
  conformIdTokenClaims: false,
  cookies: { keys: ['only for tests'] },
  enabledJWA: { idTokenSigningAlgValues: ['RS256', 'PS256', 'ES256', 'Ed25519'] },
  findAccount: (context, sub) => ({
    accountId: sub,
    claims: () => ({ sub, preferred_username: sub, groups: sub.startsWith('ops') ? ['all', 'ops'] : ['all'] }),
  }),
  jwks: { keys: settings.keys },
  pkce: { required: () => true },
  ttl: { Interaction: 600, Session: 600, Grant: 600, IdToken: 600, AccessToken: 600 },
});

createServer(provider.callback()).listen(settings.port, '127.0.0.1', () => console.log('ready'));
