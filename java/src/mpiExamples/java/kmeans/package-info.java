/** Clusters of points, whose centres all ranks compute together. */
package kmeans;
