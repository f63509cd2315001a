# What compose.yaml uses of the official image of MongoDB.
ARG BASE
FROM ${BASE}
RUN apt-get update && apt-get install --yes --no-install-recommends libcurl4 openssl && rm -rf /var/lib/apt/lists/*
RUN npm install --global mongosh@2.12.0 && npm cache clean --force
RUN useradd --system --user-group mongodb && install -d -o mongodb -g mongodb /data/db /data/configdb
COPY mongod /usr/local/bin/mongod
COPY mongo-entrypoint.sh /usr/local/bin/docker-entrypoint.sh
VOLUME ["/data/db", "/data/configdb"]
ENTRYPOINT ["docker-entrypoint.sh"]
EXPOSE 27017
CMD ["mongod"]
