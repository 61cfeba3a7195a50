/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator's streams of draws. Each draw is a function of (seed, stream, entity, occurrence),
 * so that a fault taken away, or a new one added with probability 0, shifts no other draw. Numbers
 * never change and are never given to another meaning. */
#ifndef FB_SIM_WORLD_STREAMS_H
#define FB_SIM_WORLD_STREAMS_H

enum fb_sim_stream {
    FB_SIM_STREAM_RUN = 1000,         /* entity: 0; the seed of the run's parts */
    FB_SIM_STREAM_TOPOLOGY = 1001,    /* entity: node, occurrence: neighbour */
    FB_SIM_STREAM_INCARNATION = 1002, /* entity: node, occurrence: boot */
    FB_SIM_STREAM_NODE_SEED = 1003,   /* entity: node, occurrence: boot */
    FB_SIM_STREAM_IDENTITY = 1004,    /* entity: node */
    FB_SIM_STREAM_SECRET = 1005,      /* entity: node, occurrence: count of draws */

    FB_SIM_STREAM_CLOCK = 1010, /* entity: node, occurrence: boot or window */

    FB_SIM_STREAM_DELAY = 1020,     /* entity: path, occurrence: segment of the path */
    FB_SIM_STREAM_SEGMENT = 1021,   /* entity: path, occurrence: delivery */
    FB_SIM_STREAM_CORRUPT = 1022,   /* entity: path, occurrence: segment */
    FB_SIM_STREAM_TRUNCATE = 1023,  /* entity: path, occurrence: segment */
    FB_SIM_STREAM_CUT = 1024,       /* entity: path, occurrence: segment */
    FB_SIM_STREAM_LOSS = 1025,      /* entity: path, occurrence: frame */
    FB_SIM_STREAM_DUP = 1026,       /* entity: path, occurrence: frame */
    FB_SIM_STREAM_REORDER = 1027,   /* entity: path, occurrence: frame */
    FB_SIM_STREAM_DIAL = 1028,      /* entity: path, occurrence: dial */
    FB_SIM_STREAM_HALF_OPEN = 1029, /* entity: path, occurrence: connection */
    FB_SIM_STREAM_REPLAY = 1030,    /* entity: node, occurrence: replay */

    FB_SIM_STREAM_STORE_READ = 1040,  /* entity: node, occurrence: read */
    FB_SIM_STREAM_STORE_WRITE = 1041, /* entity: node, occurrence: write set */
    FB_SIM_STREAM_STORE_CUT = 1042,   /* entity: node, occurrence: boot */

    FB_SIM_STREAM_DISK_CALL = 1043,        /* entity: fault, occurrence: call of the disk */
    FB_SIM_STREAM_DISK_VALUE = 1044,       /* entity: fault, occurrence: call of the disk */
    FB_SIM_STREAM_DISK_CRASH = 1045,       /* entity: call of the disk, occurrence: try */
    FB_SIM_STREAM_DISK_PART = 1046,        /* entity: call and part, occurrence: try */
    FB_SIM_STREAM_DISK_CONTENT = 1047,     /* entity: 0 or 1, occurrence: what is written */
    FB_SIM_STREAM_DISK_INCARNATION = 1048, /* entity: 0, occurrence: start */

    FB_SIM_STREAM_DOCUMENTS = 1049, /* entity: node and use, occurrence: read or call */

    FB_SIM_STREAM_CRASH = 1050, /* entity: node, occurrence: crash window */
    FB_SIM_STREAM_RESTART = 1051,
    FB_SIM_STREAM_RECOVERY = 1052, /* entity: node, occurrence: start */
    FB_SIM_STREAM_WALL = 1053,     /* entity: node, occurrence: reading of its wall clock */

    FB_SIM_STREAM_WEATHER = 1060,   /* entity: fault kind, occurrence: round, then window */
    FB_SIM_STREAM_SWARM = 1061,     /* entity: fault kind or operation, occurrence: round */
    FB_SIM_STREAM_WORKLOAD = 1070,  /* entity: node, occurrence: operation */
    FB_SIM_STREAM_VALUE = 1071,     /* entity: node, occurrence: operation */
    FB_SIM_STREAM_PATIENCE = 1072,  /* entity: fault, occurrence: request */
    FB_SIM_STREAM_BYZANTINE = 1080, /* entity: node, occurrence: act */
    FB_SIM_STREAM_HEAL = 1090,      /* entity: round */
    FB_SIM_STREAM_TICK = 1091,      /* entity: node, occurrence: tick */
    FB_SIM_STREAM_SHRINK = 1100,    /* entity: line, occurrence: try; of the shrinker, in no run */
    FB_SIM_STREAM_EXPLORE = 1101,   /* entity: number of a run, occurrence: draw; of a hunt */
    FB_SIM_STREAM_PRIORITY = 1102,  /* the same */
};

#endif
