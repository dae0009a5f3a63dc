// Sends to a receiver what the JavaScript libraries of senders sign, and compares each verdict with the library's own.
//
// node sender_sdks.mjs URL <SECRETS, where SECRETS is a JSON object, and node_modules is beside this file
//
// One line of JSON on the standard output for each request: sender, library, version, what was done to the request,
// whether the library takes it, status and reason of the receiver. A library that is not there is one line with "missing".
// For senders whose library only verifies, Node signs.

import {createHash, createHmac, createPrivateKey, sign as signWith} from 'node:crypto';
import {readFileSync} from 'node:fs';
import http from 'node:http';
import {createRequire} from 'node:module';

const PUBLIC = 'https://logs.example';
const require = createRequire(import.meta.url);
const [receiver] = process.argv.slice(2);
const given = JSON.parse(readFileSync(0, 'utf8'));
const agent = new http.Agent({keepAlive: true, maxSockets: 1});
const text = 'Zürich ☃ \u{1F600} "\\u00fc"';
// The time that libraries see: that at which a request was signed, so that a busy machine makes none stale.
let moment = 0;
const RealDate = Date;
globalThis.Date = class extends RealDate {
  constructor(...given) { super(...(given.length ? given : [moment || RealDate.now()])); }
  static now() { return moment || RealDate.now(); }
};
const event = {id: 'evt_1', object: 'event', type: 'a.b', n: 1.5, text};
const hmac = (algorithm, key, data, encoding) => createHmac(algorithm, key).update(data).digest(encoding);

// Each: library; signs(sdk, body, seconds, secret, url, …) returns headers; verifies(sdk, body, headers, secret, url, target).
// Verifiers get bodies as the frameworks of their examples hand them over.
const senders = {
  github: {
    library: '@octokit/webhooks-methods', signature: 'x-hub-signature-256',
    signs: async (sdk, body, seconds, secret) => ({'x-hub-signature-256': await sdk.sign(secret, `${body}`)}),
    verifies: (sdk, body, headers, secret) => sdk.verify(secret, `${body}`, headers['x-hub-signature-256']),
  },
  slack: {
    library: '@slack/bolt', signature: 'x-slack-signature', time: 'x-slack-request-timestamp',
    signs: (sdk, body, seconds, secret) => ({
      'x-slack-request-timestamp': `${seconds}`,
      'x-slack-signature': `v0=${hmac('sha256', secret, `v0:${seconds}:${body}`, 'hex')}`,
    }),
    verifies: (sdk, body, headers, secret) =>
      sdk.verifySlackRequest({signingSecret: secret, body: `${body}`, headers}) ?? true,
  },
  stripe: {
    library: 'stripe', signature: 'stripe-signature',
    signs: (sdk, body, seconds, secret) => ({
      'stripe-signature': sdk.default.webhooks.generateTestHeaderString({payload: `${body}`, secret, timestamp: seconds}),
    }),
    verifies: (sdk, body, headers, secret) =>
      sdk.default.webhooks.signature.verifyHeader(body, headers['stripe-signature'], secret, 300),
  },
  'standard-webhooks': {
    library: 'standardwebhooks', signature: 'webhook-signature', time: 'webhook-timestamp',
    signs: (sdk, body, seconds, secret) => ({
      'webhook-id': 'msg_1', 'webhook-timestamp': `${seconds}`,
      'webhook-signature': new sdk.Webhook(secret).sign('msg_1', new Date(seconds * 1000), `${body}`),
    }),
    verifies: (sdk, body, headers, secret) => new sdk.Webhook(secret).verify(body, headers, {jsonParse: false}) ?? true,
  },
  svix: {
    entry: 'standard-webhooks', library: 'svix', signature: 'svix-signature', time: 'svix-timestamp',
    signs: (sdk, body, seconds, secret) => ({
      'svix-id': 'msg_1', 'svix-timestamp': `${seconds}`,
      'svix-signature': new sdk.Webhook(secret).sign('msg_1', new Date(seconds * 1000), `${body}`),
    }),
    verifies: (sdk, body, headers, secret) => new sdk.Webhook(secret).verify(body, headers) ?? true,
  },
  twilio: {
    library: 'twilio', signature: 'x-twilio-signature', media: 'application/x-www-form-urlencoded', target: "?a=it's&b=%20x",
    body: () => new URLSearchParams([['SmsSid', 'SM1'], ['Body', text], ['Body', 'again'], ['From', '+1500'], ['Empty', '']]),
    signs: (sdk, body, seconds, secret, url) => ({
      'x-twilio-signature': sdk.default.getExpectedTwilioSignature(secret, url, fieldsOf(body)),
    }),
    verifies: (sdk, body, headers, secret, url) =>
      sdk.default.validateRequest(secret, headers['x-twilio-signature'], url, fieldsOf(body)),
  },
  'twilio-json': {
    entry: 'twilio', library: 'twilio', signature: 'x-twilio-signature',
    target: body => `?bodySHA256=${createHash('sha256').update(body).digest('hex')}`,
    signs: (sdk, body, seconds, secret, url) => ({
      'x-twilio-signature': sdk.default.getExpectedTwilioSignature(secret, url, {}),
    }),
    verifies: (sdk, body, headers, secret, url) =>
      sdk.default.validateRequestWithBody(secret, headers['x-twilio-signature'], url, `${body}`),
  },
  discord: {
    library: 'discord-interactions', with: 'tweetnacl', signature: 'x-signature-ed25519', time: 'x-signature-timestamp',
    signs: (sdk, body, seconds, secret, url, own, nacl) => {
      const pair = nacl.default.sign.keyPair.fromSeed(Buffer.from(own.seed, 'hex'));
      const made = nacl.default.sign.detached(Buffer.concat([Buffer.from(`${seconds}`), body]), pair.secretKey);
      return {'x-signature-timestamp': `${seconds}`, 'x-signature-ed25519': Buffer.from(made).toString('hex')};
    },
    verifies: (sdk, body, headers, secret) =>
      sdk.verifyKey(body, headers['x-signature-ed25519'], headers['x-signature-timestamp'], secret),
  },
  linear: {
    library: '@linear/sdk/webhooks', signature: 'linear-signature',
    body: seconds => JSON.stringify({...event, webhookTimestamp: seconds * 1000}),
    signs: (sdk, body, seconds, secret) => ({'linear-signature': hmac('sha256', secret, body, 'hex')}),
    verifies: (sdk, body, headers, secret) =>
      Boolean(new sdk.LinearWebhookClient(secret).parseData(body, headers['linear-signature'])),
  },
  hubspot: {
    library: '@hubspot/api-client', signature: 'x-hubspot-signature-v3', time: 'x-hubspot-request-timestamp',
    signs: (sdk, body, seconds, secret, url) => ({
      'x-hubspot-request-timestamp': `${seconds * 1000}`,
      'x-hubspot-signature-v3': sdk.Signature.getSignature('POST', 'v3', {
        clientSecret: secret, requestBody: `${body}`, url, timestamp: seconds * 1000,
      }),
    }),
    verifies: (sdk, body, headers, secret, url) =>
      sdk.Signature.isValid({
        signature: headers['x-hubspot-signature-v3'], clientSecret: secret, requestBody: `${body}`, url, method: 'POST',
        signatureVersion: 'v3', timestamp: headers['x-hubspot-request-timestamp'],
      }),
  },
  square: {
    library: 'square', signature: 'x-square-hmacsha256-signature',
    signs: (sdk, body, seconds, secret, url) => ({
      'x-square-hmacsha256-signature': hmac('sha256', secret, `${url}${body}`, 'base64'),
    }),
    verifies: (sdk, body, headers, secret, url) =>
      sdk.WebhooksHelper.verifySignature({
        requestBody: `${body}`, signatureHeader: headers['x-square-hmacsha256-signature'], signatureKey: secret,
        notificationUrl: url,
      }),
  },
  line: {
    library: '@line/bot-sdk', signature: 'x-line-signature',
    signs: (sdk, body, seconds, secret) => ({'x-line-signature': hmac('sha256', secret, body, 'base64')}),
    verifies: (sdk, body, headers, secret) => sdk.validateSignature(body, secret, headers['x-line-signature']),
  },
  shopify: {
    library: '@shopify/shopify-api', with: '@shopify/shopify-api/adapters/node', signature: 'x-shopify-hmac-sha256',
    signs: (sdk, body, seconds, secret) => ({
      'x-shopify-topic': 'orders/create', 'x-shopify-shop-domain': 'made-up.myshopify.com', 'x-shopify-webhook-id': '1',
      'x-shopify-api-version': '2026-01', 'x-shopify-hmac-sha256': hmac('sha256', secret, body, 'base64'),
    }),
    verifies: async (sdk, body, headers, secret) => {
      const shop = sdk.shopifyApi({
        apiKey: 'of nobody', apiSecretKey: secret, hostName: 'logs.example', isEmbeddedApp: false, logger: {level: 0},
        apiVersion: Object.values(sdk.ApiVersion)[0],
      });
      const rawRequest = {method: 'POST', url: '/shopify', headers};
      return (await shop.webhooks.validate({rawBody: `${body}`, rawRequest, rawResponse: {}})).valid;
    },
  },
  'adyen-platform': {
    library: '@adyen/api-library', signature: 'hmacsignature',
    signs: (sdk, body, seconds, secret) => ({
      hmacsignature: new sdk.hmacValidator().calculateHmac(`${body}`, secret),
    }),
    verifies: (sdk, body, headers, secret) =>
      new sdk.hmacValidator().validateHMACSignature(secret, headers.hmacsignature, `${body}`),
  },
  adyen: {
    library: '@adyen/api-library',
    body: (seconds, sdk, secret) => JSON.stringify({
      live: 'false',
      notificationItems: [1, 2, 3].map(number => {
        const item = {
          pspReference: `${number}`, merchantAccountCode: 'a', merchantReference: `r:\\ ${text}`, eventCode: 'CAPTURE',
          amount: {value: 1130, currency: 'EUR'}, success: 'true',
        };
        const hmacSignature = new sdk.hmacValidator().calculateHmac(item, secret);
        return {NotificationRequestItem: {...item, additionalData: {hmacSignature}}};
      }),
    }),
    signs: () => ({}),
    verifies: (sdk, body, headers, secret) =>
      JSON.parse(body).notificationItems.every(each =>
        new sdk.hmacValidator().validateHMAC(each.NotificationRequestItem, secret)),
  },
  paddle: {
    library: '@paddle/paddle-node-sdk', signature: 'paddle-signature',
    signs: (sdk, body, seconds, secret) => ({
      'paddle-signature': `ts=${seconds};h1=${hmac('sha256', secret, `${seconds}:${body}`, 'hex')}`,
    }),
    verifies: async (sdk, body, headers, secret) => {
      await new sdk.Paddle('of nobody').webhooks.isSignatureValid(`${body}`, secret, headers['paddle-signature']);
      return new sdk.Paddle('of nobody').webhooks.isSignatureValid(`${body}`, secret, headers['paddle-signature']);
    },
  },
  sendgrid: {
    library: '@sendgrid/eventwebhook', signature: 'x-twilio-email-event-webhook-signature',
    time: 'x-twilio-email-event-webhook-timestamp',
    signs: (sdk, body, seconds, secret, url, own) => ({
      'x-twilio-email-event-webhook-timestamp': `${seconds}`,
      'x-twilio-email-event-webhook-signature': signWith('sha256', Buffer.concat([Buffer.from(`${seconds}`), body]),
        createPrivateKey(own.private_key)).toString('base64'),
    }),
    verifies: (sdk, body, headers, secret) => {
      const check = new sdk.default.EventWebhook();
      return check.verifySignature(check.convertPublicKeyToECDSA(secret), body,
        headers['x-twilio-email-event-webhook-signature'], headers['x-twilio-email-event-webhook-timestamp']);
    },
  },
  contentful: {
    library: '@contentful/node-apps-toolkit', signature: 'x-contentful-signature', time: 'x-contentful-timestamp',
    media: 'application/vnd.contentful.management.v1+json', target: '?a=b%20c&d=é',
    signs: (sdk, body, seconds, secret, url, own, other, target) => sdk.signRequest(
      secret, {method: 'POST', path: target, body: `${body}`, headers: {'content-type': senders.contentful.media}},
      seconds * 1000),
    verifies: (sdk, body, headers, secret, url, target) =>
      sdk.verifyRequest(secret, {method: 'POST', path: target, body: `${body}`, headers}, 30),
  },
  box: {
    library: 'box-node-sdk/managers/webhooks', signature: 'box-signature-primary', time: 'box-delivery-timestamp',
    signs: (sdk, body, seconds, secret) => {
      const moment = new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');
      return {
        'box-delivery-timestamp': moment, 'box-signature-version': '1', 'box-signature-algorithm': 'HmacSHA256',
        'box-signature-primary': hmac('sha256', secret, Buffer.concat([body, Buffer.from(moment)]), 'base64'),
      };
    },
    verifies: (sdk, body, headers, secret) => sdk.WebhooksManager.validateMessage(`${body}`, headers, secret),
  },
  workos: {
    library: '@workos-inc/node', signature: 'workos-signature',
    signs: async (sdk, body, seconds, secret) => {
      const check = new sdk.WorkOS('of nobody').webhooks.signatureProvider;
      const made = await check.computeSignature(seconds * 1000, JSON.parse(body), secret);
      return {'workos-signature': `t=${seconds * 1000}, v1=${made}`};
    },
    verifies: (sdk, body, headers, secret) => new sdk.WorkOS('of nobody').webhooks.verifyHeader({
      payload: JSON.parse(body), sigHeader: headers['workos-signature'], secret,
    }),
  },
};

function fieldsOf(body) {
  const fields = {};
  for (const [name, value] of new URLSearchParams(`${body}`)) {
    fields[name] = name in fields ? [fields[name], value].flat() : value;
  }
  return fields;
}

// What is done to a genuine request: its headers, as names and values, and its body.
function* mutations(sender, headers, body) {
  const at = name => headers.findIndex(([each]) => each === name);
  const changed = (name, change) => headers.map(([each, value]) => [each, each === name ? change(value) : value]);
  const {signature, time} = sender;
  yield ['body changed', headers, Buffer.from(`${body}`.replace('1', '2'))];
  yield ['body + newline', headers, Buffer.concat([body, Buffer.from('\n')])];
  yield ['body with mark', headers, Buffer.concat([Buffer.from('\ufeff'), body])];
  yield ['body without é', headers, Buffer.from(`${body}`.replace('ü', 'u'))];
  yield ['body not UTF-8', headers, Buffer.from(`${body}`.replace('ü', '\u00fc'), 'latin1')];
  yield ['body empty', headers, Buffer.alloc(0)];
  if (signature) {
    const value = headers[at(signature)][1];
    const core = value.slice(value.search(/[^=, ]{20,}={0,2}$/));
    const wrong = value.replace(core, [...core].reverse().join(''));
    const edits = {
      'upper case': each => each.toUpperCase(),
      'upper core': each => each.replace(core, core.toUpperCase()),
      'blank before': each => ` ${each}`,
      'blank after': each => `${each} `,
      'tab after': each => `${each}\t`,
      'blank before core': each => each.replace(core, ` ${core}`),
      'blank in core': each => each.replace(core, `${core.slice(0, 10)} ${core.slice(10)}`),
      'blank after =': each => each.replaceAll('=', '= '),
      'blank before =': each => each.replaceAll('=', ' ='),
      'blank after ,': each => each.replaceAll(',', ', '),
      'blank after ;': each => each.replaceAll(';', '; '),
      'no padding': each => each.replace(/=+$/, ''),
      'more padding': each => `${each}=`,
      'four of padding': each => `${each}====`,
      'base64url': each => each.replaceAll('+', '-').replaceAll('/', '_'),
      'last of base64': each => each.replace(/(.)(=+)$/, (all, last, pad) =>
        String.fromCharCode(last.charCodeAt(0) + 1) + pad),
      'one more': each => `${each}0`,
      'one less': each => each.slice(0, -1),
      'two less': each => each.slice(0, -2),
      'only prefix': each => each.replace(core, ''),
      'no prefix': () => core,
      'prefix twice': each => each.replace(core, each),
      'upper prefix': each => each.slice(0, 4).toUpperCase() + each.slice(4),
      'in quotes': each => `"${each}"`,
      'core in quotes': each => each.replace(core, `"${core}"`),
      'escaped': each => encodeURIComponent(each),
      'zero at end': each => `${each}%00`,
      'comma at end': each => `${each},`,
      'comma at start': each => `,${each}`,
      'not ASCII': each => `${each}\u00e9`,
      'empty': () => '',
    };
    for (const between of [',', ' ', ', ', ';', ' , ']) {
      edits[`wrong first, then right, by "${between}"`] = each => `${wrong}${between}${each}`;
      edits[`right first, then wrong, by "${between}"`] = each => `${each}${between}${wrong}`;
      edits[`core again, wrong, by "${between}"`] = each => {
        const item = each.split(/[,; ]+/).pop().replace(core, [...core].reverse().join(''));
        return `${each}${between}${item}`;
      };
      edits[`twice, by "${between}"`] = each => `${each}${between}${each}`;
    }
    for (const [name, edit] of Object.entries(edits)) yield [name, changed(signature, edit), body];
    yield ['no signature', headers.filter(([each]) => each !== signature), body];
    yield ['two headers, wrong first', [[signature, wrong], ...headers], body];
    yield ['two headers, wrong last', [...headers, [signature, wrong]], body];
    yield ['two headers, the same', [...headers, [signature, value]], body];
    // The same each time.
    let seed = 20261123;
    const next = below => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
    for (let number = 0; number < 30; number++) {
      const place = next(value.length);
      const letter = String.fromCharCode(33 + next(94));
      if (letter.toLowerCase() !== value[place].toLowerCase()) {
        yield [`"${letter}" at ${place}`, changed(signature, each => each.slice(0, place) + letter + each.slice(place + 1)),
          body];
      }
    }
  }
  if (time) {
    const edits = {
      'time + 1': each => `${Number(each) + 1}`, 'time with zero': each => `0${each}`, 'time with +': each => `+${each}`,
      'time .0': each => `${each}.0`, 'time e0': each => `${each}e0`, 'time with blank': each => `${each} `,
      'time with text': each => `${each}abc`, 'time in hex': each => `0x${Number(each).toString(16)}`, 'time empty': () => '',
      'time none': () => 'NaN', 'time not ASCII': each => `${each}\u00b2`,
    };
    for (const [name, edit] of Object.entries(edits)) yield [name, changed(time, edit), body];
    yield ['no time', headers.filter(([each]) => each !== time), body];
    yield ['two times', [...headers, headers[at(time)]], body];
  }
}

// A request as a receiver in Node sees its headers.
function seen(headers) {
  const found = {};
  for (const [name, value] of headers) found[name] = name in found ? `${found[name]}, ${value.trim()}` : value.trim();
  return found;
}

function send(target, headers, body) {
  return new Promise((resolve, reject) => {
    const flat = [...headers, ['content-length', `${body.length}`], ['host', 'logs.example']].flat();
    const request = http.request(`${receiver}${target}`, {method: 'POST', headers: flat, agent}, response => {
      const pieces = [];
      response.on('data', piece => pieces.push(piece));
      response.on('end', () => {
        let reason = '';
        try { reason = JSON.parse(Buffer.concat(pieces)).reason ?? ''; } catch { /* an answer of the sender's own */ }
        resolve([response.statusCode, reason]);
      });
    });
    request.on('error', reject);
    request.end(body);
  });
}

for (const [name, sender] of Object.entries(senders)) {
  const own = given[name];
  if (!own) continue;
  const parts = sender.library.split('/');
  const library = parts.slice(0, parts[0].startsWith('@') ? 2 : 1).join('/');
  let sdk, other, version;
  try {
    sdk = await import(sender.library);
    other = sender.with && await import(sender.with);
    const path = require.resolve.paths(library).map(each => `${each}/${library}/package.json`);
    version = path.map(each => { try { return JSON.parse(readFileSync(each)).version; } catch { return ''; } }).find(Boolean);
  } catch (error) {
    console.log(JSON.stringify({sender: name, library, missing: error.message}));
    continue;
  }
  const now = () => Math.floor(RealDate.now() / 1000);
  const made = async (seconds, secret, more = 0, keys = own) => {
    let body = (sender.body ?? (() => JSON.stringify({...event, more: more ? 'ü'.repeat(more) : undefined})))(seconds, sdk, secret);
    body = Buffer.from(`${body}`);
    const behind = typeof sender.target === 'function' ? sender.target(body) : sender.target ?? '';
    const target = encodeURI(`/${name}${behind}`).replaceAll('%25', '%');
    const signed = await sender.signs(sdk, body, seconds, secret, PUBLIC + target, keys, other, target);
    return [target, [['content-type', sender.media ?? 'application/json'], ...Object.entries(signed)], body];
  };
  const judge = async (what, target, headers, body) => {
    const {pathname, search} = new URL(receiver + target); // as Node sends it: with other escapes
    const arrived = pathname + search;
    let sdkTakes = false;
    try {
      sdkTakes = Boolean(await sender.verifies(sdk, body, seen(headers), own.secret, PUBLIC + arrived, arrived));
    } catch {
      sdkTakes = false;
    }
    const [status, reason] = await send(target, headers, body);
    console.log(JSON.stringify({sender: name, library, version, what, sdk: sdkTakes, status, reason}));
  };
  if (own.ours) {
    moment = own.ours.moment * 1000;
    await judge('ours', own.ours.target, own.ours.headers, Buffer.from(own.ours.body, 'base64'));
    moment = 0;
  }
  for (const [what, more] of [['genuine', 0], ['large', 300_000]]) {
    const signed = now();
    moment = signed * 1000;
    await judge(what, ...await made(signed, own.secret, more));
    moment = 0;
  }
  await judge('wrong secret', ...await made(now(), own.wrong, 0, {...own, ...own.by_wrong}));
  for (const seconds of [-3600, 3600]) await judge(`signed ${seconds} s off`, ...await made(now() + seconds, own.secret));
  const signed = now();
  const [target, headers, body] = await made(signed, own.secret);
  moment = signed * 1000;
  for (const [what, ...request] of mutations(sender, headers, body)) await judge(what, target, ...request);
  moment = 0;
}
agent.destroy();
