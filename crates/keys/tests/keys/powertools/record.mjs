// Records the keys of Powertools for TypeScript for the payloads in `vectors/python.json`; see `record.py`.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

// The library is installed in the current directory.
const require = createRequire(join(process.cwd(), 'index.js'));
const { IdempotencyConfig } = require('@aws-lambda-powertools/idempotency');
const { BasePersistenceLayer } = require('@aws-lambda-powertools/idempotency/persistence');
const { PowertoolsFunctions } = require('@aws-lambda-powertools/jmespath/functions');
const index = require.resolve('@aws-lambda-powertools/idempotency');
const { IdempotencyHandler } = require(join(dirname(index), 'IdempotencyHandler.js'));

const vectors = process.env.POWERTOOLS_VECTORS ?? join(dirname(fileURLToPath(import.meta.url)), 'vectors');
const { document, cases } = JSON.parse(readFileSync(join(vectors, 'python.json'), 'utf8'));
console.warn = () => {};

class Layer extends BasePersistenceLayer {}

const outcome = ({ json = document, expression, hash, prefix = ' p ' }) => {
  try {
    const config = new IdempotencyConfig({
      ...(expression === undefined ? {} : { eventKeyJmesPath: expression }),
      payloadValidationJmesPath: expression ?? '@',
      hashFunction: hash ?? 'md5',
      jmesPathOptions: new PowertoolsFunctions(),
    });
    const persistenceStore = new Layer();
    persistenceStore.configure({ config, keyPrefix: prefix });
    const handler = new IdempotencyHandler({
      functionToMakeIdempotent: () => {},
      functionArguments: [],
      functionPayloadToBeHashed: JSON.parse(json),
      idempotencyConfig: config,
      persistenceStore,
    });
    if (handler.shouldSkipIdempotency()) return { missing: true };
    const data = JSON.parse(json);
    return {
      key: persistenceStore.getHashedIdempotencyKey(data),
      validation: persistenceStore.getHashedPayload(data),
    };
  } catch (error) {
    if (process.env.SHOW_ERRORS) console.error(expression ?? json, error.message);
    return { error: true };
  }
};

const lines = cases.map(({ key, missing, error, validation, ...recorded }) =>
  JSON.stringify({ ...recorded, ...outcome(recorded) }),
);
const text = `{"document": ${JSON.stringify(document)},\n"cases": [\n${lines.join(',\n')}\n]}\n`;
writeFileSync(join(vectors, 'typescript.json'), text);
console.log(lines.length, 'cases');
